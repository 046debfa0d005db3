"""Spark sessions for the jobs: quiet, on this Python, with the data source registered."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.spark.errors import SparkError
from rewindmq.pipeline.spark.java import find_java
from rewindmq.pipeline.spark.small import small_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_MASTER: Final = "local[*]"
_LOOPBACK: Final = "127.0.0.1"
# Limit for Spark's Java to end, in seconds, before it is killed.
_PATIENCE: Final = 20.0

# Java prints this before the message of the error that ended it.
_THREAD: Final = re.compile(r'^Exception in thread "[^"]*" (?:[\w.$]+: )?')
_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
_CONFIG: Final = MappingProxyType(
    {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        # Spark announces its default log configuration unless the configuration is named.
        _JAVA_OPTIONS: "-Dlog4j2.configurationFile=classpath:org/apache/spark/log4j2-defaults.properties",
        # Files with messages, like those that the jobs write themselves, are for their owner only.
        "spark.hadoop.fs.permissions.umask-mode": "077",
    }
)
# Settings that every session needs, including sessions that the caller made.
_SQL_CONFIG: Final = MappingProxyType(
    {
        # Off by default in Spark 4; without it a filter skips neither files nor blocks.
        "spark.sql.python.filterPushdown.enabled": "true",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # Limits batches between Spark and Python in bytes, because bodies may be long.
        "spark.sql.execution.arrow.maxBytesPerBatch": str(32 << 20),
    }
)


def make_session(
    master: str = DEFAULT_MASTER,
    *,
    app_name: str = "rewindmq-pipeline",
    memory: str | None = None,
    config: Mapping[str, str] | None = None,
    log: Path | None = None,
    log_bytes: int | None = None,
) -> SparkSession:
    """Start Spark and call ``register``. End the session with ``stop_session``, which also ends its Java.

    Args:
        memory: memory of the driver and of each executor, in Spark's form ("4g"); None: Spark's default.
        config: further Spark settings; they override those made here.
        log: file for the output of Spark's process (log, workers' tracebacks); None: this process's stderr.
        log_bytes: bytes of commit log that the session's jobs read. On this machine, a session for at most
            ``SMALL_LOG`` bytes starts faster and runs small jobs faster; None: the jobs may be large.

    Raises:
        PipelineError: Spark or Java is missing, Spark does not start, or this process has a session.
    """
    require_spark()
    java = find_java()
    from pyspark import SparkContext

    if SparkContext._active_spark_context is not None:
        raise PipelineError("this process has a Spark session already: use it, after register(spark)")
    small = small_settings(master, log_bytes, _CONFIG[_JAVA_OPTIONS])
    settings = {**_CONFIG, **small, **_memory_settings(memory), **(config or {})}
    settings |= {"spark.master": master, "spark.app.name": app_name}
    with _environment(_variables(master, settings, java.home)), _own_signal_handler():
        spark = _start(settings, log)
    register(spark)
    for name, value in (config or {}).items():
        if name in _SQL_CONFIG:
            spark.conf.set(name, value)
    return spark


def has_session() -> bool:
    """Whether this process has a session or is a job of ``spark-submit``; loads nothing of Spark."""
    context: Any = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    is_active = context is not None and context._active_spark_context is not None
    return is_active or "PYSPARK_GATEWAY_PORT" in os.environ


def running_session() -> SparkSession | None:
    """Return this process's session after ``register``; None if there is no session.

    The session may come from ``spark-submit``, a notebook or a test.
    """
    if not has_session():
        return None
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    register(spark)
    return spark


def register(spark: SparkSession) -> None:
    """Register RewindMQ's data source as ``rocketmq``, and enable the pushdown of filters to it."""
    from rewindmq.pipeline.source import StoreDataSource

    for name, value in _SQL_CONFIG.items():
        spark.conf.set(name, value)
    spark.dataSource.register(StoreDataSource)


def stop_session(spark: SparkSession) -> None:
    """Stop Spark and the Java process that ``make_session`` started for it."""
    from pyspark import SparkContext

    gateway: Any = spark.sparkContext._gateway
    spark.stop()
    if gateway.proc is not None:
        _end_java(gateway)
        # A later session of this process must start a Java of its own.
        SparkContext._gateway = None
        SparkContext._jvm = None


def require_spark() -> None:
    """Check that the extra ``pipeline`` is installed, without loading it.

    Raises:
        PipelineError: it is not installed.
    """
    missing = [
        name for name in ("pyspark", "pyarrow", "numpy", "duckdb") if importlib.util.find_spec(name) is None
    ]
    if missing:
        raise PipelineError(f"needs {', '.join(missing)}: pip install 'rewindmq[pipeline]'")


def _memory_settings(memory: str | None) -> dict[str, str]:
    return {} if memory is None else {"spark.driver.memory": memory, "spark.executor.memory": memory}


def _variables(master: str, settings: Mapping[str, str], java_home: Path) -> dict[str, str]:
    """Return the environment for Spark's processes."""
    is_local = master.startswith("local")
    is_here = is_local or urlsplit(master).hostname in ("localhost", _LOOPBACK)
    configured = settings.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON")
    variables = {
        "JAVA_HOME": str(java_home),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYSPARK_PYTHON": sys.executable if is_local or not configured else configured,
    }
    if is_here:
        # The name of this machine need not resolve to an address.
        variables["SPARK_LOCAL_IP"] = _LOOPBACK
    return variables


def _start(settings: Mapping[str, str], log: Path | None) -> SparkSession:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark import SparkConf, SparkContext, java_gateway
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    launch: Callable[..., Any] = java_gateway.launch_gateway

    config = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    gateway: Any = None
    try:
        if log is None:
            gateway = launch(config)
        else:
            with log.open("ab") as file:
                gateway = launch(config, {"stdout": file, "stderr": file})
        context = SparkContext(gateway=gateway, conf=config)
        context.setLogLevel(settings["spark.log.level"])
        return SparkSession(context)
    except (PySparkException, Py4JError) as error:
        if gateway is not None:
            _end_java(gateway)
            SparkContext._gateway = None
            SparkContext._jvm = None
        raise SparkError(f"Spark does not start: {_first_line(error, log)}") from None


def _first_line(error: Exception, log: Path | None) -> str:
    """Return Java's error message, in one line."""
    cause = getattr(error, "java_exception", None)
    text = str(error) if cause is None else str(cause.getMessage() or cause)
    if log is not None and cause is None and (lines := log.read_text("utf-8", "replace").split("\n")):
        text = next((line for line in lines if "xception" in line or "rror" in line), text)
    return _THREAD.sub("", text.strip().partition("\n")[0])


@contextmanager
def _own_signal_handler() -> Iterator[None]:
    """Keep Spark from handling Ctrl-C.

    Spark's handler asks Java to cancel jobs, in the middle of any other request to Java. Without the handler,
    stopping the session ends the jobs.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _end_java(gateway: Any) -> None:
    gateway.shutdown()
    gateway.proc.stdin.close()
    try:
        gateway.proc.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        gateway.proc.kill()
        gateway.proc.wait()


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables while Spark reads them."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
