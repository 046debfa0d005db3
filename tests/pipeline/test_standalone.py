"""The same results from a real cluster: a standalone master and two worker processes, each with one core."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

import pytest

from rewindmq.pipeline.spark.java import find_java
from tests.pipeline.logs import random_store
from tests.pipeline.sparks import JAVA_OPTIONS
from tests.support.repository import importing_environment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

DEPLOY = "org.apache.spark.deploy"
# The driver program; the local session does the same in this process.
DRIVER = """
import json, sys
from pathlib import Path
from rewindmq.pipeline.spark.session import make_session, stop_session
from tests.pipeline.sparks import JAVA_OPTIONS
from tests.pipeline.standalone_work import work

master, stores, out = sys.argv[1], json.loads(sys.argv[2]), Path(sys.argv[3])
config = {
    # Nothing begins before both workers are there.
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": JAVA_OPTIONS,
    "spark.executor.extraJavaOptions": JAVA_OPTIONS,
    "spark.sql.shuffle.partitions": "4",
}
spark = make_session(master, memory="512m", config=config, log=out / "driver.log")
found = work(spark, stores, out)
hosts = spark.range(0, 8, 1, 8).rdd.mapPartitions(lambda rows: [__import__("os").getppid()]).collect()
found["processes"] = len(set(hosts))
stop_session(spark)
print(json.dumps(found))
"""


@contextmanager
def daemon(kind: str, arguments: list[str], log: Path, said: str) -> Iterator[str]:
    """Run one of Spark's servers; yield its ready line, and stop it at the end."""
    import pyspark

    command = [str(Path(pyspark.__file__).parent / "bin" / "spark-class"), f"{DEPLOY}.{kind}", *arguments]
    environment = {
        **os.environ,
        "JAVA_HOME": str(find_java().home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": JAVA_OPTIONS,
    }
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        try:
            line = next((line for line in process.stderr if said in line), None)
            assert line is not None, f"{kind} ended"
            # It must never block because its output is not read.
            rest = threading.Thread(target=_drain, args=(process.stderr, log))
            rest.start()
            yield line
        finally:
            process.terminate()
            process.wait()
        rest.join()


def _drain(stream: IO[str], log: Path) -> None:
    with log.open("w") as file:
        for line in stream:
            file.write(line)


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a cluster of two workers."""
    folder = tmp_path_factory.mktemp("standalone")
    with ExitStack() as stack:
        options = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        line = stack.enter_context(
            daemon("master.Master", options, folder / "master.log", "Starting Spark master at")
        )
        address = line.split()[-1]
        for number in range(2):
            work = folder / f"worker-{number}"
            options = ["--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "1g"]
            options += ["--work-dir", str(work), address]
            log = folder / f"worker-{number}.log"
            stack.enter_context(daemon("worker.Worker", options, log, "Successfully registered with master"))
        yield address


def contents(root: Path, *folders: str) -> dict[str, bytes]:
    """The published files of some folders."""
    current = root / "current"
    return {
        str(path.relative_to(current)): path.read_bytes()
        for folder in folders
        for path in sorted((current / folder).rglob("*"))
        if path.is_file()
    }


def test_a_cluster_of_two_workers_reads_compacts_and_indexes_as_one_process_does(
    spark: SparkSession, master: str, tmp_path: Path
) -> None:
    from tests.pipeline.standalone_work import work

    stores = [str(tmp_path / name) for name in ("broker-a", "broker-b")]
    for seed, store in enumerate(stores):
        random_store(Path(store), seed=seed, count=200)
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    expected = work(spark, stores, here)
    result = subprocess.run(
        [sys.executable, "-c", DRIVER, master, json.dumps(stores), str(there)],
        env=importing_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
    found = json.loads(result.stdout)
    assert found.pop("processes") == 2
    assert found == expected
    for folders in (("compacted", "commitlog", "consumequeue"), ("indexed", "consumequeue", "index")):
        output, *rest = folders
        files = contents(there / output, *rest)
        assert files
        assert files == contents(here / output, *rest)
