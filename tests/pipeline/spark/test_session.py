"""Spark sessions: settings, errors, and no remaining files or processes."""

from __future__ import annotations

import os
import pkgutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.spark.errors import SparkError, described
from rewindmq.pipeline.spark.session import make_session, running_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run_python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A process in which a warning is an error, that of an unclosed file or socket, too."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def test_filters_reach_the_data_source_and_workers_are_this_interpreter(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.python.filterPushdown.enabled") == "true"
    assert spark.conf.get("spark.sql.execution.arrow.pyspark.enabled") == "true"
    assert spark.sparkContext.pythonExec == sys.executable
    assert spark.sparkContext.uiWebUrl is None


def test_a_process_has_one_session(spark: SparkSession) -> None:
    with pytest.raises(PipelineError, match="has a Spark session already"):
        make_session("local[1]")
    running = running_session()
    assert running is not None
    assert running.sparkContext is spark.sparkContext


@pytest.mark.slow(full_only="tests/pipeline/test_processes.py ends a session and looks for remains")
def test_a_session_leaves_nothing_behind_and_another_may_follow(tmp_path: Path) -> None:
    code = """
import os, signal, sys
from pathlib import Path
from rewindmq.pipeline.spark.session import make_session, running_session, stop_session

before = dict(os.environ)
assert running_session() is None
spark = make_session("local[1]", config={"spark.sql.shuffle.partitions": "3"}, log=Path(sys.argv[1]))
java = spark.sparkContext._gateway.proc
assert spark.conf.get("spark.sql.shuffle.partitions") == "3"
stop_session(spark)
assert java.returncode is not None
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
assert running_session() is None
# Spark itself leaves two settings for its workers.
added = {name for name in os.environ if name not in before}
assert added <= {"SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE"}, added
"""
    result = run_python(code, str(tmp_path / "spark.log"))
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.slow
def test_a_spark_that_does_not_start_says_why(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from rewindmq.pipeline.spark.session import make_session
from rewindmq.pipeline.spark.errors import SparkError

try:
    make_session("nonsense", log=Path(sys.argv[1]))
except SparkError as error:
    print(error)
"""
    # Spark itself leaves a pipe open when its Java ends early.
    command = [sys.executable, "-c", code, str(tmp_path / "spark.log")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    said = "Spark does not start: Master must either be yarn or start with spark, k8s, or local\n"
    assert result.stdout == said


def test_without_the_extra_one_line_says_how_to_install_it() -> None:
    """Whichever of its packages is missing; in a process that has loaded none of them."""
    code = (
        "import sys\n"
        "from rewindmq.__main__ import main\n"
        "for missing in ('pyspark', 'pyarrow', 'numpy'):\n"
        "    sys.modules[missing] = None\n"
        "    assert main(['pipeline', 'show', 'anywhere']) == 1\n"
        "    del sys.modules[missing]\n"
        "    assert not {'pyspark', 'pyarrow', 'numpy'} & set(sys.modules)"
    )
    result = run_python(code)
    assert (result.returncode, result.stderr) == (
        0,
        "".join(
            f"rewindmq pipeline: needs {missing}: pip install 'rewindmq[pipeline]'\n"
            for missing in ("pyspark", "pyarrow", "numpy")
        ),
    )


def test_without_java_one_line_says_what_to_install(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    code = (
        "import os, sys\n"
        "from rewindmq.pipeline.spark import java, session\n"
        "from rewindmq.pipeline.errors import PipelineError\n"
        "session.find_java = lambda: java.find_java({'PATH': sys.argv[1]}, ())\n"
        "try: session.make_session('local[1]')\n"
        "except PipelineError as error: print(error)"
    )
    result = run_python(code, str(java.parent))
    assert (result.returncode, result.stderr) == (0, "")
    assert f"{tmp_path} is Java 11" in result.stdout


def test_spark_finds_the_data_source_by_itself() -> None:
    found = [info.name for info in pkgutil.iter_modules() if info.name.startswith("pyspark_rewindmq")]
    assert found == ["pyspark_rewindmq"]
    import pyspark_rewindmq

    assert pyspark_rewindmq.DefaultSource.name() == "rocketmq"


def test_without_the_extra_spark_finds_nothing_rather_than_failing() -> None:
    code = (
        "import sys; sys.modules['pyarrow'] = sys.modules['numpy'] = None\n"
        "import pyspark_rewindmq\n"
        "print(hasattr(pyspark_rewindmq, 'DefaultSource'))"
    )
    result = run_python(code)
    assert (result.stdout, result.stderr) == ("False\n", "")


OURS = """\
[PYTHON_DATA_SOURCE_ERROR] Failed to initialize Python data source reader: Traceback (most recent call last):
  File "x.py", line 1, in f
rewindmq.pipeline.errors.PipelineError: there is no store at /x: the directory does not exist
 SQLSTATE: 38000
"""
THEIRS = """\
Job aborted due to stage failure: Task 0 in stage 1.0 failed
Traceback (most recent call last):
  File "x.py"
ValueError: no such thing
"""


@pytest.mark.parametrize(
    ("message", "text", "kind"),
    [
        (OURS, "there is no store at /x: the directory does not exist", PipelineError),
        (THEIRS, "the Spark job failed: ValueError: no such thing", SparkError),
        ("java.lang.OutOfMemoryError: Java heap space\n\tat x", "Spark ran out of memory: give", SparkError),
        ("Stage cancelled\n\tat x", "the Spark job failed: Stage cancelled", SparkError),
    ],
)
def test_a_failure_of_spark_is_one_line(message: str, text: str, kind: type[Exception]) -> None:
    error = described(message)
    assert type(error) is kind
    assert str(error).startswith(text)
    assert "\n" not in str(error)


def test_the_sessions_environment_is_as_it_was(spark: SparkSession) -> None:
    assert "SPARK_LOCAL_IP" not in os.environ
