"""Jobs as programs of their own: interrupted, submitted, and by nothing but the data source's name."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rewindmq.pipeline.spark.java import find_java
from tests.pipeline.logs import random_store
from tests.pipeline.sparks import JAVA_OPTIONS

pytestmark = pytest.mark.slow

JOBS = Path(__file__).resolve().parents[2] / "pipeline" / "jobs"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("processes") / "broker-a"
    random_store(root, seed=4, count=60)
    return root


def test_ctrl_c_ends_a_job_its_java_and_leaves_no_output(store: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = [sys.executable, "-m", "rewindmq", "pipeline", "index", str(store), str(out)]
    # Its Java and workers have stderr open, too: it ends with the last of them.
    with subprocess.Popen(
        [*command, "--master", "local[1]"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as process:
        assert process.stderr is not None
        begun = [next(process.stderr), next(process.stderr)]
        assert begun == ["starting Spark\n", "reading the log\n"]
        process.send_signal(signal.SIGINT)
        text, rest = process.communicate()
    assert process.returncode == 130
    assert text == ""
    assert "Traceback" not in rest
    assert not (out / "manifest.json").exists()
    assert not list(tmp_path.glob("rewindmq-spark-*"))


def submit(program: Path, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    import pyspark

    log = folder / "log4j2.properties"
    log.write_text("rootLogger.level = off\n")
    environment = {
        **os.environ,
        "JAVA_HOME": str(find_java().home),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    options = ["--master", "local[1]", "--conf", "spark.ui.enabled=false"]
    options += ["--driver-java-options", f"-Dlog4j2.configurationFile={log} {JAVA_OPTIONS}"]
    return subprocess.run(
        [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), *options, str(program), *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_job_can_be_submitted(store: Path, tmp_path: Path) -> None:
    result = submit(JOBS / "show.py", str(store), "--count", "--quiet", folder=tmp_path)
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) > 0


@pytest.mark.slow(full_only="test_session.py and test_snapshot.py have the same lines")
def test_a_submitted_job_says_in_one_line_what_is_wrong(tmp_path: Path) -> None:
    result = submit(JOBS / "show.py", str(tmp_path / "nowhere"), folder=tmp_path)
    assert result.returncode == 1
    # spark-submit puts a program's stderr into stdout.
    assert result.stdout == f"show: there is no store at {tmp_path}/nowhere: the directory does not exist\n"


@pytest.mark.slow(full_only="tests/pipeline/test_source.py reads by that name")
def test_a_plain_spark_session_reads_by_the_name_of_the_data_source(store: Path, tmp_path: Path) -> None:
    program = tmp_path / "plain.py"
    program.write_text(
        "import sys\n"
        "from pyspark.sql import SparkSession\n"
        "spark = SparkSession.builder.getOrCreate()\n"
        "print(spark.read.format('rocketmq').load(sys.argv[1]).where(\"topic = 'Orders'\").count())\n"
    )
    result = submit(program, str(store), folder=tmp_path)
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) > 0
