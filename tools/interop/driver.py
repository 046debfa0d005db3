"""The suite's side of the line protocol that ``drivers/README.md`` describes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

READY_SECONDS: Final = 240.0
REQUEST_SECONDS: Final = 240.0
# The kind of the error that every request gets once the driver has ended.
DRIVER_ENDED: Final = "driver"
_STOP_SECONDS: Final = 30.0
_LINE_BYTES: Final = 64 << 20
# Lowers the clients' priority. Their libraries wait 3 or 5 s for an answer, and a JVM that starts has dozens
# of busy threads: with equal priority the only thread of a server waits for all of them.
_NICENESS: Final = 8
# Options that a library may lack although it has the operation; scenarios require them by these names.
OPTIONS: Final = frozenset(
    ("sql92", "broadcasting", "trace", "fail_times", "max_reconsume_times", "hold", "reset", "new_topic")
)


class DriverError(Exception):
    """An error that a client's library reported.

    Attributes:
        kind: the library's name for it.
        code: RocketMQ's response code, or None.
    """

    def __init__(self, kind: str, code: int | None, text: str) -> None:
        super().__init__(f"{kind} {code}: {text}")
        self.kind = kind
        self.code = code
        self.text = text


class DriverProgram:
    """One running driver program.

    Attributes:
        ops: the operations and options that its library has.
        delivered: by consumer, every message that its listeners received so far, in that order.
        checked: by producer, every message whose transaction was checked so far.
    """

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process = process
        self._log = log
        self._next = 0
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._ready: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._told = asyncio.Condition()
        self._ended: DriverError | None = None
        self._reader = asyncio.create_task(self._read())
        self.ops: frozenset[str] = frozenset()
        self.client = self.version = ""
        self.delivered: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.checked: dict[str, list[dict[str, Any]]] = defaultdict(list)

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        log: Path,
        environment: Mapping[str, str] | None = None,
        *,
        niceness: int = _NICENESS,
    ) -> DriverProgram:
        """Start a driver and wait until it is ready; its standard error goes to ``log``.

        Args:
            environment: variables beside those of this process.
            niceness: lowers its priority, so that it yields the processor to the servers; 0 to 19.
        """
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as errors:
            process = await asyncio.create_subprocess_exec(
                *("nice", "-n", str(niceness)),
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                limit=_LINE_BYTES,
                env=os.environ | dict(environment or {}),
                process_group=0,
            )
        driver = cls(process, log)
        try:
            ready = await asyncio.wait_for(driver._ready, READY_SECONDS)
        except TimeoutError:
            await driver.kill()
            text = f"{command[0]} was not ready in {READY_SECONDS:g} s"
            raise TimeoutError(f"{text}; the end of its standard error:\n{driver._log_tail()}") from None
        except BaseException:
            await driver.kill()
            raise
        driver.client, driver.version = ready["client"], ready["version"]
        driver.ops = frozenset(ready["ops"]) | (OPTIONS - frozenset(ready.get("lacks", ())))
        return driver

    @property
    def pid(self) -> int:
        return self._process.pid

    async def do(self, op: str, *, seconds: float = REQUEST_SECONDS, **fields: Any) -> dict[str, Any]:
        """Have the driver carry out an operation, and wait until it is done.

        Raises:
            DriverError: the client's library refused or failed, or the driver has ended.
            TimeoutError: the driver did not answer in ``seconds``.
        """
        assert "id" not in fields, "id is the request's number"
        if self._ended is not None:
            raise self._ended
        self._next += 1
        number = self._next
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        line = json.dumps({"id": number, "op": op} | fields)
        assert self._process.stdin is not None
        self._process.stdin.write(line.encode() + b"\n")
        try:
            return await asyncio.wait_for(answer, seconds)
        except TimeoutError:
            raise TimeoutError(f"{self.client} {self.version}: no answer to {op} in {seconds:g} s") from None
        finally:
            self._waiting.pop(number, None)

    async def bodies(self, consumer: str, count: int, seconds: float = REQUEST_SECONDS) -> list[str]:
        """Wait until ``consumer`` has ``count`` messages or more; return the bodies of all."""
        return [message["body"] for message in await self.messages(consumer, count, seconds)]

    async def messages(
        self, consumer: str, count: int, seconds: float = REQUEST_SECONDS
    ) -> list[dict[str, Any]]:
        """Wait until ``consumer`` has ``count`` messages or more; return all."""
        try:
            async with asyncio.timeout(seconds), self._told:
                await self._told.wait_for(lambda: len(self.delivered[consumer]) >= count)
        except TimeoutError:
            got = [message["body"] for message in self.delivered[consumer]]
            text = f"{consumer} was given {len(got)} of {count} messages in {seconds:g} s: {got[:50]}"
            raise TimeoutError(text) from None
        return list(self.delivered[consumer])

    async def stop(self) -> int:
        """End the driver cleanly, by ending its standard input; return the exit code."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), _STOP_SECONDS)
        except TimeoutError:
            self._process.kill()
        return await self._over()

    async def kill(self) -> int:
        """End the driver by SIGKILL; return the exit code."""
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGKILL)
        return await self._over()

    async def _over(self) -> int:
        code = await self._process.wait()
        await self._reader
        return code

    async def _read(self) -> None:
        assert self._process.stdout is not None
        reason = "ended"
        async for line in self._process.stdout:
            try:
                told = json.loads(line)
            except ValueError:
                reason = f"printed a line that is not JSON: {line[:200]!r}"
                break
            await self._take(told)
        text = f"{reason}; the end of its standard error:\n{self._log_tail()}"
        error = self._ended = DriverError(DRIVER_ENDED, None, text)
        for waiting in (self._ready, *self._waiting.values()):
            if not waiting.done():
                waiting.set_exception(error)
                # The caller may have given up.
                waiting.exception()

    def note_log(self, error: BaseException) -> None:
        """Attach the end of the driver's standard error to an error."""
        error.add_note(f"the standard error of the client's process ends:\n{self._log_tail()}")

    def _log_tail(self) -> str:
        return self._log.read_text(errors="replace")[-3000:]

    async def _take(self, line: dict[str, Any]) -> None:
        if "ready" in line:
            self._ready.set_result(line["ready"])
        elif line.get("event") == "delivered":
            await self._tell(self.delivered[line["consumer"]], line["messages"])
        elif line.get("event") == "checked":
            await self._tell(self.checked[line["producer"]], [line["message"]])
        elif (answer := self._waiting.get(line["id"])) is not None and not answer.done():
            error = line.get("error")
            if error is None:
                answer.set_result(line["ok"])
            else:
                answer.set_exception(DriverError(error["type"], error.get("code"), error["text"]))

    async def _tell(self, list_: list[dict[str, Any]], messages: list[dict[str, Any]]) -> None:
        async with self._told:
            list_.extend(messages)
            self._told.notify_all()
