"""Runs the service of a server process: event loop, log, signals, end of the parent, ready line.

Only entry points call it; it is the only module that loads uvloop and uses standard streams and signals.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import resource
import signal
import stat
import sys
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, Protocol

from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.points import Probe
from rewindmq.protocol.remoting.process.allocator import keep_freed_memory
from rewindmq.protocol.remoting.process.collector import tune_collector
from rewindmq.protocol.remoting.process.log_format import OneLineFormatter
from rewindmq.protocol.remoting.process.options import ProcessOptions
from rewindmq.protocol.remoting.process.parent_commands import (
    ControlledService,
    ParentCommands,
    TravellingClock,
)
from rewindmq.protocol.remoting.process.stall_watch import watch_stalls
from rewindmq.protocol.remoting.runtime import Clock, Runtime, system_runtime

_STDIN: Final = 0
_MAX_LINE_BYTES: Final = 4_096

_log = logging.getLogger(__name__)


class Service(Protocol):
    """The service that a process runs."""

    @property
    def address(self) -> str:
        """The bound ``host:port``; valid after ``start``."""

    async def start(self) -> None:
        """Start serving; after a failure, ``close`` must be able to clean up."""

    async def close(self) -> None:
        """Stop cleanly; also called after a ``start`` that failed or was cancelled."""


def raise_descriptor_limit() -> None:
    """Raise the soft limit of open file descriptors to the hard limit, where the system allows it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        # macOS refuses the hard limit "unlimited"; the soft limit stays.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def run_process(
    kind: str,
    make_service: Callable[[Runtime], Service],
    options: ProcessOptions,
    details: Mapping[str, object] = MappingProxyType({}),
    probe: Probe | None = None,
) -> int:
    """Run a service until SIGTERM, SIGINT or, with ``exit_with_parent``, the end of standard input.

    When the service has started, one line of JSON goes to standard output:
    ``{"ready": kind, **details, "address": "host:port", "pid": ...}``. The log goes to standard error. The
    process raises its limit of file descriptors: each connection and each mapped file needs one.

    Args:
        probe: called at every trace point.

    Returns:
        The exit code of an orderly stop, 0.

    Raises:
        RewindMQError, OSError: the service could not start; the text is for the user.
    """

    async def work(runtime: Runtime, stopping: asyncio.Event) -> int:
        with watch_stalls(runtime) as watched:
            await _serve(kind, make_service(watched), watched.clock, stopping, details)
        return 0

    raise_descriptor_limit()
    return run_work(work, options, probe)


def run_work(
    work: Callable[[Runtime, asyncio.Event], Coroutine[Any, Any, int]],
    options: ProcessOptions,
    probe: Probe | None = None,
) -> int:
    """Run one coroutine as the process; it must end when its event is set.

    Args:
        work: called as ``work(runtime, stopping)``; its result is the exit code. ``stopping`` is set by
            SIGTERM, SIGINT or the end of the parent.
        probe: called at every trace point.

    Raises:
        RewindMQError, OSError: raised by ``work``; the text is for the user.
    """
    configure_log(options.log_level)
    if options.exit_with_parent:
        _require_pipe_on_stdin()
    runtime = system_runtime(time_scale=options.time_scale, seed=options.seed, probe=probe)
    if options.exit_with_parent:
        # Only a parent can move the clock of its process.
        runtime = replace(runtime, clock=TravellingClock(options.time_scale))
    keep_freed_memory()
    tune_collector()
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            # Before the coroutine exists: Ctrl-C in between would warn that it was never awaited.
            runner.get_loop()
            return runner.run(_until_stopped(work, runtime, options))
    finally:
        runtime.workers.close()


async def finishes_before(stopping: asyncio.Event, work: Coroutine[Any, Any, object]) -> bool:
    """Await ``work``, or cancel it if ``stopping`` is set first; return True if it finished.

    Raises:
        Exception: raised by ``work``.
    """
    working = asyncio.ensure_future(work)
    stop = asyncio.ensure_future(stopping.wait())
    try:
        await asyncio.wait((working, stop), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            return False
        working.result()
        return True
    finally:
        for task in (working, stop):
            task.cancel()
        await asyncio.gather(working, stop, return_exceptions=True)


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop's loop factory if installed; None means asyncio's."""
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


def read_parent_line(descriptor: int = _STDIN) -> str:
    """Wait for the first line the parent writes to standard input, before the event loop runs.

    A parent uses the line for values that it did not know at launch, so that a cluster's processes load in
    parallel. Bytes after the line stay in the pipe.

    Raises:
        RewindMQError: the parent closed the pipe first, or the line is too long or not UTF-8.
    """
    line = bytearray()
    while len(line) <= _MAX_LINE_BYTES:
        byte = os.read(descriptor, 1)
        if not byte:
            raise RewindMQError("standard input ended before its first line")
        if byte == b"\n":
            try:
                return line.decode()
            except UnicodeDecodeError:
                break
        line += byte
    raise RewindMQError("the first line of standard input is too long or not UTF-8")


def configure_log(level: str) -> None:
    """Send the log to standard error, one line per event."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLineFormatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


async def _until_stopped(
    work: Callable[[Runtime, asyncio.Event], Coroutine[Any, Any, int]],
    runtime: Runtime,
    options: ProcessOptions,
) -> int:
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    if options.exit_with_parent:
        loop.add_reader(_STDIN, _watch_lifeline, loop, stopping)
    try:
        return await work(runtime, stopping)
    finally:
        loop.remove_reader(_STDIN)


async def _serve(
    kind: str,
    service: Service,
    clock: Clock,
    stopping: asyncio.Event,
    details: Mapping[str, object],
) -> None:
    try:
        if await finishes_before(stopping, service.start()):
            ready: dict[str, Any] = {"ready": kind, **details, "address": service.address, "pid": os.getpid()}
            # Log before the ready line: a parent that has read the ready line finds this log line.
            _log.info("%s serves at %s", kind, service.address)
            print(json.dumps(ready, separators=(",", ":")), flush=True)
            if isinstance(clock, TravellingClock) and isinstance(service, ControlledService):
                _follow_parent(ParentCommands(service, clock, _STDIN), stopping)
            await stopping.wait()
            _log.info("%s stops", kind)
    finally:
        await service.close()


def _follow_parent(commands: ParentCommands, stopping: asyncio.Event) -> None:
    """Watch the lifeline, and follow the parent's commands."""
    loop = asyncio.get_running_loop()

    def read() -> None:
        if not commands.read():
            _lose_parent(loop, stopping)

    loop.add_reader(_STDIN, read)


def _watch_lifeline(loop: asyncio.AbstractEventLoop, stopping: asyncio.Event) -> None:
    try:
        alive = bool(os.read(_STDIN, _MAX_LINE_BYTES))
    except OSError:
        alive = False
    if not alive:
        _lose_parent(loop, stopping)


def _lose_parent(loop: asyncio.AbstractEventLoop, stopping: asyncio.Event) -> None:
    loop.remove_reader(_STDIN)
    _log.info("the parent process is gone")
    stopping.set()


def _require_pipe_on_stdin() -> None:
    try:
        mode = os.fstat(_STDIN).st_mode
    except OSError:
        mode = 0
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        raise RewindMQError("--exit-with-parent needs a pipe on standard input")
