"""Parts that the sub-commands share: Spark's options, and the session of a command."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from rewindmq.pipeline.engines.choice import ENGINES
from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.spark.progress import ProgressDisplay, make_progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rewindmq.pipeline.engines.runner import Runner
    from rewindmq.pipeline.snapshot.snapshot import StoreSnapshot

_ENGINE_HELP: Final = (
    "local: this process, without Java; spark; auto (default): local for stores with at most 64 MiB of "
    "commit log in all, unless an option of Spark is given"
)
_BYTES: Final = re.compile(r"([1-9][0-9]{0,12})([kmgKMG]?)")
_SHIFTS: Final = {"": 0, "k": 10, "m": 20, "g": 30}
_MEMORY: Final = re.compile(r"([1-9][0-9]{0,6})([mgMG])")
# Spark refuses to start with less than 450 MiB.
_MIN_MEMORY: Final = 512 << 20


class CommandJob(NamedTuple):
    """A command's Spark session and its progress display."""

    spark: SparkSession
    display: ProgressDisplay


class CommandWork(NamedTuple):
    """What runs a command's tasks, and its progress display."""

    runner: Runner
    display: ProgressDisplay


def add_common_arguments(
    parser: argparse.ArgumentParser,
    json_help: str = "print the summary as one JSON object",
) -> None:
    """Define the options that every sub-command has."""
    parser.add_argument("--engine", choices=ENGINES, default=ENGINES[0], help=_ENGINE_HELP)
    group = parser.add_argument_group("Spark")
    group.add_argument(
        "--master",
        metavar="URL",
        help="Spark master that runs the job (default: local[*], all cores of this machine)",
    )
    group.add_argument(
        "--memory",
        type=_memory,
        metavar="SIZE",
        help="memory of the driver and of each executor, as in 4g (default: 1g)",
    )
    group.add_argument(
        "--conf",
        type=_setting,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a Spark setting; may be repeated",
    )
    parser.add_argument("--json", action="store_true", help=json_help)
    parser.add_argument("--quiet", action="store_true", help="show no progress")


def log_bytes(stores: Iterable[StoreSnapshot]) -> int:
    """Return the bytes of commit log of all stores."""
    return sum(store.end - store.begin for store in stores)


def runs_locally(arguments: argparse.Namespace, stores: Iterable[StoreSnapshot]) -> bool:
    """Whether a command runs in this process; print a warning if the caller named it for large stores.

    Raises:
        PipelineError: the arguments name the local engine and options of Spark.
    """
    from rewindmq.pipeline.engines.choice import is_local, size_warning
    from rewindmq.pipeline.spark.session import has_session

    size = log_bytes(stores)
    has_options = any((arguments.master, arguments.memory, arguments.conf))
    runs_here = is_local(arguments.engine, size, has_options=has_options, has_session=has_session())
    if (warning := size_warning(arguments.engine, size)) is not None:
        print(f"rewindmq pipeline: {warning}", file=sys.stderr)
    return runs_here


@contextlib.contextmanager
def displayed(arguments: argparse.Namespace) -> Iterator[ProgressDisplay]:
    """Provide the progress display of a command that runs in this process."""
    display = make_progress(sys.stderr, is_quiet=arguments.quiet)
    with _ended(display):
        yield display


@contextlib.contextmanager
def working(arguments: argparse.Namespace, stores: Iterable[StoreSnapshot]) -> Iterator[CommandWork]:
    """Provide the engine of a job: this process or Spark, by the arguments and the stores.

    Raises:
        PipelineError: as ``running`` and ``runs_locally``.
    """
    from rewindmq.pipeline.engines.local_engine import LocalEngine

    stores = list(stores)
    if runs_locally(arguments, stores):
        with displayed(arguments) as display:
            yield CommandWork(LocalEngine(), display)
        return
    with running(arguments, stores) as (spark, display):
        yield CommandWork(spark, display)


@contextlib.contextmanager
def running(arguments: argparse.Namespace, stores: Iterable[StoreSnapshot]) -> Iterator[CommandJob]:
    """Provide a Spark session for one command; turn failures of its jobs into one-line errors.

    Use this process's session if there is one. Else start a session and stop it at the end. Spark's own
    output then goes to a file. The file is kept, and the error names it, only if the job fails.

    Args:
        stores: what the command reads; small ones get a session for small jobs.

    Raises:
        PipelineError: the job fails.
    """
    from rewindmq.pipeline.spark.errors import in_one_line
    from rewindmq.pipeline.spark.interrupts import interruptible
    from rewindmq.pipeline.spark.session import DEFAULT_MASTER, make_session, running_session, stop_session

    display = make_progress(sys.stderr, is_quiet=arguments.quiet)
    spark = running_session()
    if spark is not None:
        with in_one_line(), _ended(display):
            display.watch(spark)
            yield CommandJob(spark, display)
        return
    settings = dict(arguments.conf)
    with _log() as log, interruptible(), contextlib.ExitStack() as stack:
        stack.enter_context(_ended(display))
        display.begin("starting Spark")
        master = arguments.master or DEFAULT_MASTER
        spark = make_session(
            master, memory=arguments.memory, config=settings, log=log, log_bytes=log_bytes(stores)
        )
        stack.callback(stop_session, spark)
        # Spark must still run: the display asks it for tasks, and its errors ask it for their text.
        stack.enter_context(_ended(display))
        stack.enter_context(in_one_line())
        display.watch(spark)
        yield CommandJob(spark, display)


@contextlib.contextmanager
def _ended(display: ProgressDisplay) -> Iterator[None]:
    try:
        yield
    except BaseException:
        display.end(is_done=False)
        raise
    display.end(is_done=True)


@contextlib.contextmanager
def _log() -> Iterator[Path]:
    """Provide a file for Spark's log; keep it only if an error names it."""
    from rewindmq.pipeline.spark.errors import SparkError

    descriptor, name = tempfile.mkstemp(prefix="rewindmq-spark-", suffix=".log")
    os.close(descriptor)
    try:
        yield Path(name)
    except SparkError as error:
        raise PipelineError(f"{error}; Spark's log: {name}") from None
    except BaseException:
        Path(name).unlink()
        raise
    Path(name).unlink()


def positive_int(text: str) -> int:
    """Parse a whole number, 1 or more."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


def byte_count(text: str) -> int:
    """Parse a number of bytes, KiB, MiB or GiB: ``1048576``, ``1m``."""
    match = _BYTES.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of bytes, as in 1073741824 or 1g")
    return int(match[1]) << _SHIFTS[match[2].lower()]


def _memory(text: str) -> str:
    match = _MEMORY.fullmatch(text)
    if match is None or int(match[1]) << _SHIFTS[match[2].lower()] < _MIN_MEMORY:
        raise argparse.ArgumentTypeError(f"{text!r} is not a memory size of at least 512m, as in 4g")
    return text


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.startswith("spark."):
        raise argparse.ArgumentTypeError(f"{text!r} is not a Spark setting, as in spark.local.dir=/tmp")
    return key, value
