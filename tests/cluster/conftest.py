"""Fixtures of cluster tests: running processes and the name server's broker table."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from rewindmq.protocol.body.cluster import ClusterInfo
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RemotingError
from rewindmq.protocol.remoting.client import RemotingClient
from rewindmq.protocol.remoting.runtime import system_runtime
from tests.cluster.cluster_stage import BrokersAt, ProcessesOf, Watch
from tests.support.processes import WAIT_SECONDS, Watched


@pytest.fixture
def watch() -> Iterator[Watch]:
    """``watch(pids)`` returns a ``Watched``, which waits until those processes have ended."""
    with contextlib.ExitStack() as stack:

        def hold(pids: Iterable[int]) -> Watched:
            watched = Watched(pids)
            stack.callback(watched.close)
            return watched

        yield hold


@pytest.fixture
def processes_of() -> ProcessesOf:
    """``processes_of(directory)`` returns the command lines of running processes that name the directory."""

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
def brokers_at() -> BrokersAt:
    """Return a function that waits until exactly these brokers are registered at a name server."""

    async def wait(address: str, names: set[str]) -> dict[str, str]:
        runtime = system_runtime()
        client = RemotingClient(runtime)
        deadline = runtime.clock.monotonic() + WAIT_SECONDS
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
