"""The members of a running cluster: what each does, and commands that change it."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from typing import Final

from rewindmq.cluster.async_cluster import AsyncLocalCluster
from rewindmq.cluster.errors import ClusterError
from rewindmq.cluster.server_process import ServerProcess
from rewindmq.cluster.up.messages import Member, MemberAction, MemberState


class Members:
    """The processes of a cluster, and the commands of ``rewindmq members``."""

    def __init__(self, cluster: AsyncLocalCluster) -> None:
        self._cluster = cluster
        # One command at a time: a second one must see what the first one did.
        self._turn: Final = asyncio.Lock()
        # Those whose end was reported or asked for.
        self._ended: set[str] = set()

    @property
    def processes(self) -> tuple[ServerProcess, ...]:
        """The name server, the masters and the slaves."""
        cluster = self._cluster
        return (cluster.namesrv, *cluster.brokers.values(), *cluster.slaves.values())

    def list(self) -> list[Member]:
        """Return all members."""
        return [_member(process) for process in self.processes]

    async def do(self, action: MemberAction, name: str) -> Member:
        """Change one member, and return it when it has ended, serves again, or is paused.

        Raises:
            ClusterError: there is no such member, its state does not allow the action, or it did not start.
        """
        async with self._turn:
            process = self._find(name)
            _refuse_wrong_state(process, action)
            if action is MemberAction.PAUSE:
                self._cluster.pause(name)
            elif action is MemberAction.RESUME:
                self._cluster.resume(name)
            else:
                # The watch must not report this end.
                self._ended.add(name)
                if action is MemberAction.KILL:
                    await self._cluster.kill(name)
                else:
                    await self._cluster.restart(name)
                    self._ended.discard(name)
            return _member(process)

    @contextlib.asynccontextmanager
    async def exclusively(self) -> AsyncIterator[None]:
        """Let no command change a member during an ``async with`` statement."""
        async with self._turn:
            yield

    @contextlib.asynccontextmanager
    async def replacing(self) -> AsyncIterator[None]:
        """Do the same for a block that ends processes and starts them again; the watch reports none of it."""
        async with self._turn:
            before, self._ended = self._ended, {process.name for process in self.processes}
            try:
                yield
            finally:
                running = {process.name for process in self.processes if process.is_running}
                self._ended = (self._ended | before) - running

    def report_ended(self) -> None:
        """Print one line for each process that has ended by itself since the last call."""
        for process in self.processes:
            if not process.is_running and process.name not in self._ended:
                self._ended.add(process.name)
                print(f"rewindmq up: {process.name} has ended, see {process.log_path}", file=sys.stderr)

    def _find(self, name: str) -> ServerProcess:
        processes = {process.name: process for process in self.processes}
        if name not in processes:
            raise ClusterError(f"there is no member {name!r}; members: {', '.join(processes)}")
        return processes[name]


def _member(process: ServerProcess) -> Member:
    is_running = process.is_running
    state = MemberState.PAUSED if process.is_paused else MemberState.RUNNING
    return Member(
        process.name,
        state if is_running else MemberState.ENDED,
        process.address,
        process.pid if is_running else None,
        str(process.log_path),
    )


def _refuse_wrong_state(process: ServerProcess, action: MemberAction) -> None:
    name = process.name
    if action is MemberAction.RESTART:
        return
    if not process.is_running:
        raise ClusterError(f"{name} is not running; to start it: rewindmq members restart {name}")
    if action is MemberAction.PAUSE and process.is_paused:
        raise ClusterError(f"{name} is paused already; to let it continue: rewindmq members resume {name}")
    if action is MemberAction.RESUME and not process.is_paused:
        raise ClusterError(f"{name} is not paused")
