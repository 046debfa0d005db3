"""The control socket of ``rewindmq up``."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from rewindmq import LocalCluster
from rewindmq.cluster.async_cluster import AsyncLocalCluster
from rewindmq.cluster.up import control
from rewindmq.cluster.up.control import control_socket
from rewindmq.cluster.up.members import Members


@pytest.fixture
def members(registry: Path) -> Members:
    """Of a cluster that is not running: no command comes."""
    return Members(AsyncLocalCluster(LocalCluster(brokers=1)))


async def test_a_connection_that_sends_no_command_is_closed(
    tmp_path: Path, members: Members, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "_COMMAND_SECONDS", 0.01)
    async with control_socket(tmp_path, members):
        reader, writer = await asyncio.open_unix_connection(tmp_path / "control.sock")
        writer.write(b'{"action"')
        assert await reader.read() == b""
        writer.close()


async def test_a_socket_that_cannot_serve_leaves_nothing(
    tmp_path: Path, members: Members, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise OSError("no more files")

    monkeypatch.setattr(asyncio, "start_unix_server", fail)
    with pytest.raises(OSError, match="no more files"):
        async with control_socket(tmp_path, members):
            raise AssertionError
    assert not (tmp_path / "control.sock").exists()
