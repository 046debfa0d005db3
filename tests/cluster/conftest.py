"""What cluster tests look at from outside: processes and the name server's tables."""

from __future__ import annotations

import contextlib
import os
import select
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from rewindmq.protocol.body.cluster import ClusterInfo
from rewindmq.protocol.body_codec import decode_body
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RemotingError
from rewindmq.protocol.remoting.client import RemotingClient
from rewindmq.protocol.remoting.runtime import system_runtime

TIMEOUT = 20.0


class Watched:
    """Processes known by pid, held so that a pid used again is not mistaken for one of them."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._descriptors = [os.pidfd_open(pid) for pid in pids]

    def wait_gone(self) -> None:
        for descriptor in self._descriptors:
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            assert poll.poll(TIMEOUT * 1_000), "a process is still there"

    def close(self) -> None:
        for descriptor in self._descriptors:
            os.close(descriptor)


@pytest.fixture
def watch() -> Iterable[Callable[[Iterable[int]], Watched]]:
    """``watch(pids)`` gives something to wait for the end of those processes with."""
    with contextlib.ExitStack() as stack:

        def hold(pids: Iterable[int]) -> Watched:
            watched = Watched(pids)
            stack.callback(watched.close)
            return watched

        yield hold


@pytest.fixture
def processes_of() -> Callable[[Path], list[str]]:
    """``processes_of(directory)``: command lines of running processes that name the directory."""

    def find(directory: Path) -> list[str]:
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                with contextlib.suppress(OSError):
                    command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    if str(directory) in command:
                        found.append(command)
        return found

    return find


@pytest.fixture
def brokers_at() -> Callable[[str, set[str]], object]:
    """``await brokers_at(namesrv_address, names)`` waits until exactly these brokers are registered."""

    async def wait(address: str, names: set[str]) -> dict[str, str]:
        runtime = system_runtime()
        client = RemotingClient(runtime)
        deadline = runtime.clock.monotonic() + TIMEOUT
        known: dict[str, str] = {}
        try:
            while runtime.clock.monotonic() < deadline:
                with contextlib.suppress(RemotingError):
                    command = RemotingCommand(RequestCode.GET_BROKER_CLUSTER_INFO)
                    answer = await client.invoke(address, command)
                    table = decode_body(answer.require_success(), ClusterInfo).broker_addr_table
                    known = {name: broker.broker_addrs[0] for name, broker in table.items()}
                    if set(known) == names:
                        return known
                await runtime.timers.sleep(0.02)
            raise AssertionError(f"registered: {sorted(known)}, expected: {sorted(names)}")
        finally:
            await client.close()

    return wait
