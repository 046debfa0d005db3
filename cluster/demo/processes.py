"""Worker processes as the demo sees them: start, commands, results and stop."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from rewindmq.cluster.demo.journal import DemoDelivery, DemoJournal, PassedPoint
from rewindmq.cluster.demo.names import QUEUES, TOPIC
from rewindmq.cluster.demo.worker import CONSUMER, PRODUCER
from rewindmq.cluster.errors import ClusterError
from rewindmq.protocol.files.private import make_private_folder, open_private
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile

_LINE_BYTES: Final = 65_536
_STOP_SECONDS: Final = 10.0


class WorkerOptions(NamedTuple):
    """Arguments of every worker."""

    namesrv: str
    time_scale: float
    profile: Profile
    log_directory: Path


class DemoWorker:
    """One worker process; ``async with`` starts and stops it.

    Args:
        name: the worker's name and that of its log file.
        on_line: called with every value that the worker writes.

    Attributes:
        is_ready: the worker is connected and waits for commands.
    """

    def __init__(
        self, name: str, role: str, options: WorkerOptions, on_line: Callable[[dict[str, Any]], None]
    ) -> None:
        self.name = name
        self.is_ready = False
        self._role = role
        self._options = options
        self._on_line = on_line
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def __aenter__(self) -> Self:
        options = self._options
        make_private_folder(self.log_path.parent)
        with open_private(self.log_path, "ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-m", "rewindmq.cluster.demo.worker", self._role),
                *("--namesrv", options.namesrv),
                *("--time-scale", str(options.time_scale)),
                *("--profile", str(options.profile)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                limit=_LINE_BYTES,
                # Ctrl-C at the terminal must reach only the demo, which stops the workers cleanly.
                process_group=0,
            )
        self._reading = asyncio.create_task(self._read(self._process))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process, reading = self._process, self._reading
        assert process is not None
        assert process.stdin is not None
        assert reading is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await process.wait()
        except TimeoutError:
            pass
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            await reading

    @property
    def log_path(self) -> Path:
        return self._options.log_directory / f"{self.name}.log"

    def send_command(self, command: str) -> None:
        """Write one command to the worker's standard input."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n".encode())

    def check(self) -> None:
        """Raise ClusterError if the worker has ended."""
        assert self._process is not None
        if self._process.returncode is not None:
            raise ClusterError(
                f"{self.name} ended with exit code {self._process.returncode}: {self._last_log_line()}"
            )

    def _last_log_line(self) -> str:
        lines = self.log_path.read_text(errors="replace").splitlines()
        return lines[-1] if lines else "its log is empty"

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            value = json.loads(line)
            if "ready" in value:
                self.is_ready = True
            else:
                self._on_line(value)


class Sent(NamedTuple):
    """A message that its broker has acknowledged; ``number`` is the i of its body ``Hello RocketMQ i``."""

    number: int
    queue: MessageQueue
    offset: int


class ProducerWorker(DemoWorker):
    """The producer's process; ``sent`` grows as messages are acknowledged."""

    def __init__(self, options: WorkerOptions) -> None:
        super().__init__("producer", PRODUCER, options, self._add_sent)
        self.sent: list[Sent] = []
        self._next_index = 0

    def send(self, count: int) -> range:
        """Let the worker send ``count`` messages, and return their indexes without waiting."""
        indexes = self._take_indexes(count)
        self.send_command(f"send {indexes.start} {count}")
        return indexes

    def send_one_to_each_queue(self) -> range:
        """Let the worker send one message to each queue, and return their indexes without waiting."""
        indexes = self._take_indexes(QUEUES)
        self.send_command(f"each {indexes.start}")
        return indexes

    def _take_indexes(self, count: int) -> range:
        indexes = range(self._next_index, self._next_index + count)
        self._next_index = indexes.stop
        return indexes

    def _add_sent(self, value: dict[str, Any]) -> None:
        self.sent.append(
            Sent(value["sent"], MessageQueue(TOPIC, value["broker"], value["queue"]), value["offset"])
        )


class ConsumerWorker(DemoWorker):
    """A consumer's process, whose reports go to the journal.

    Attributes:
        done: commands that the worker has carried out.
    """

    def __init__(self, name: str, options: WorkerOptions, journal: DemoJournal) -> None:
        super().__init__(name, CONSUMER, options, self._add_report)
        self.done: list[str] = []
        self._journal = journal

    def _add_report(self, value: dict[str, Any]) -> None:
        if "done" in value:
            self.done.append(value["done"])
            return
        queue = None
        if value["broker"] is not None:
            queue = MessageQueue(TOPIC, value["broker"], value["queue"])
        if "delivered" in value:
            assert queue is not None
            delivery = DemoDelivery(self.name, queue, value["offset"], value["delivered"], value["at"])
            self._journal.add(delivery)
        else:
            self._journal.add(
                PassedPoint(
                    self.name, Point(value["point"]), value["at"], queue, value["offset"], value["address"]
                )
            )
