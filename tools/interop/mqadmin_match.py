"""A RewindMQ and a RocketMQ cluster with the same content, each with its own mqadmin process."""

from __future__ import annotations

import asyncio
import shlex
import threading
from collections.abc import Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from rewindmq.protocol.profile import Profile
from tools.interop.mqadmin_cases import LOOKING, V4, V5, V5_CONSUMERS, MqadminCase
from tools.interop.mqadmin_state import FILES, ClusterState
from tools.interop.mqadmin_text import comparable
from tools.interop.mqadmin_tool import OWN_TIMEOUT, MqadminTool, ToolOutput
from tools.interop.servers import RewindMQServer, RocketMQServer, Server
from tools.interop.toolchains import java_driver
from tools.interop.versions import SERVER_4, SERVER_5

_Result = TypeVar("_Result")
# These bounds only end a test that hangs.
_SECONDS: Final = 600.0
_THEN_SECONDS: Final = 120.0
_ASK_SECONDS: Final = 0.2
_ASK_TIMES: Final = 4


@dataclass(frozen=True)
class MatchKind:
    """A release of the tool, and the two clusters it is run against."""

    tool: str
    profile: Profile
    rewindmq_config: dict[str, object]
    server: str
    rocketmq_config: dict[str, object]


# Without the timer wheel, 5.x answers deleteTopic with a NullPointerException.
_TIMERS: Final[dict[str, object]] = {"timerWheelEnable": "true"}
_AT_CONSUMERS: Final[dict[str, object]] = {"useServerSideResetOffset": "false"}

KINDS: Final = {
    V4: MatchKind(V4, Profile.V49, {}, SERVER_4, {}),
    V5: MatchKind(V5, Profile.V53, {}, SERVER_5, _TIMERS),
    V5_CONSUMERS: MatchKind(V5, Profile.V53, _AT_CONSUMERS, SERVER_5, _TIMERS | _AT_CONSUMERS),
}


def _lacks_route(lines: list[str]) -> bool:
    return any("CODE: 17" in line for line in lines)


def _start(kind: MatchKind) -> list[Server]:
    """Start RewindMQ and RocketMQ; stop both if one does not start."""
    with ThreadPoolExecutor(2) as starters:
        starting: list[Future[Server]] = [
            starters.submit(lambda: RewindMQServer(kind.profile, config=kind.rewindmq_config)),
            starters.submit(lambda: RocketMQServer(kind.server, config=kind.rocketmq_config)),
        ]
    failed = [error for future in starting if (error := future.exception()) is not None]
    servers = [future.result() for future in starting if future.exception() is None]
    if failed:
        _close(servers)
        raise failed[0]
    return servers


def _close(servers: list[Server]) -> None:
    with ThreadPoolExecutor(2) as closers:
        for server in servers:
            closers.submit(server.close)


@dataclass
class MatchedCluster:
    """One of the two clusters, with its content and its tool."""

    server: Server
    state: ClusterState
    tool: MqadminTool

    async def run(self, line: str) -> ToolOutput:
        return await self.tool.run(*shlex.split(line.format(**self.state.names())))

    async def ask(self, line: str) -> ToolOutput:
        """Run a command that changes nothing, or nothing more when it is run again.

        The tool gives up after 3 s of its own, on a busy machine before a server has had its turn; no option
        changes that. Then it asks again, ``_ASK_TIMES`` times in all: a server that never answers is seen.
        """
        printed = await self.run(line)
        for _ in range(_ASK_TIMES - 1):
            if OWN_TIMEOUT not in printed.errors:
                break
            printed = await self.run(line)
        return printed

    async def leave(self) -> None:
        """End the tool and every client."""
        try:
            await self.tool.stop()
        finally:
            await self.state.close()

    def comparable(self, printed: ToolOutput, case: MqadminCase) -> list[str]:
        names = {text: f"<{name}>" for name, text in self.state.names().items() if text}
        return comparable(
            printed,
            names,
            only_shape=case.only_shape,
            is_unordered=case.is_unordered,
            ignored=case.ignored,
        )


class Match:
    """Both clusters; their clients live in the event loop of a thread, so that consumers keep running."""

    def __init__(self, kind: MatchKind, directory: Path) -> None:
        self.kind = kind
        java_driver(kind.tool)
        self._servers = _start(kind)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._sides: list[MatchedCluster] = []
        try:
            self.wait(self._prepare(directory))
        except BaseException:
            self.close()
            raise
        self.rewindmq, self.rocketmq = self._sides

    async def _prepare(self, directory: Path) -> None:
        sides = (self._side(server, directory) for server in self._servers)
        made = await asyncio.gather(*sides, return_exceptions=True)
        self._sides += [side for side in made if isinstance(side, MatchedCluster)]
        for side in made:
            if isinstance(side, BaseException):
                raise side

    async def _side(self, server: Server, directory: Path) -> MatchedCluster:
        state = await ClusterState.prepare(server)
        address = server.namesrv_address
        try:
            tool = await MqadminTool.start(self.kind.tool, address, directory / server.name, signs=True)
        except BaseException:
            await state.close()
            raise
        for name, text in FILES.items():
            (directory / server.name / name).write_text(text)
        return MatchedCluster(server, state, tool)

    def wait(self, coroutine: Coroutine[Any, Any, _Result]) -> _Result:
        """Run a coroutine in the clients' loop and return its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(_SECONDS)

    async def ask_both(self, line: str) -> tuple[ToolOutput, ToolOutput]:
        """Return what a command prints on RewindMQ and on RocketMQ; see ``MatchedCluster.ask``."""
        rewindmq, rocketmq = await asyncio.gather(self.rewindmq.ask(line), self.rocketmq.ask(line))
        return rewindmq, rocketmq

    async def compare(self, case: MqadminCase) -> tuple[list[str], list[str]]:
        """Return the lines of a command, or of the one that shows its effect, on RewindMQ and RocketMQ."""
        rewindmq, rocketmq = await self._lines(case.line, case)
        if case.then and rewindmq == rocketmq:
            loop = asyncio.get_running_loop()
            end = loop.time() + _THEN_SECONDS
            rewindmq, rocketmq = await self._lines(case.then, case)
            # Neither cluster reports when a name server has received the change.
            while (rewindmq != rocketmq or _lacks_route(rewindmq) != case.ends_route) and loop.time() < end:
                await asyncio.sleep(_ASK_SECONDS)
                rewindmq, rocketmq = await self._lines(case.then, case)
        return rewindmq, rocketmq

    async def _lines(self, line: str, case: MqadminCase) -> tuple[list[str], list[str]]:
        if case in LOOKING or line == case.then:
            rewindmq, rocketmq = await self.ask_both(line)
        else:
            rewindmq, rocketmq = await asyncio.gather(self.rewindmq.run(line), self.rocketmq.run(line))
        return self.rewindmq.comparable(rewindmq, case), self.rocketmq.comparable(rocketmq, case)

    def close(self) -> None:
        """End the clients, the tools and both clusters."""
        try:
            self.wait(self._leave())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            _close(self._servers)

    async def _leave(self) -> None:
        # Consumers first finish the resets they have begun, 10 s each.
        await asyncio.gather(*(side.leave() for side in self._sides))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
