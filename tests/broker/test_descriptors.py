"""A broker process that runs out of file descriptors, or may not write, recovers without a restart."""

from __future__ import annotations

import asyncio
import contextlib
import resource
from pathlib import Path

import pytest

from rewindmq.protocol.code import ResponseCode
from tests.support.process import TIMEOUT, serving
from tests.support.stage import ServerStage

# Of 256 descriptors the store may use 64, 128 are the reserve; 64 are for connections, 32 for one address.
FEW = ["sh", "-c", 'ulimit -n 256; exec "$@"', "sh"]
PERMITTED, PER_ADDRESS = 64, 32


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    path = tmp_path / "broker.conf"
    keys = ("mappedFileSizeCommitLog=1048576", "mappedFileSizeConsumeQueue=60000", "brokerName=broker-a")
    path.write_text("\n".join((*keys, f"storePathRootDir={tmp_path / 'store'}")))
    return path


async def is_closed(reader: asyncio.StreamReader) -> None:
    """Return when the broker has closed the connection; it sends nothing without a request."""
    with contextlib.suppress(ConnectionResetError):
        assert await reader.read(1) == b""


async def test_idle_connections_leave_the_store_its_descriptors(conf: Path, stage: ServerStage) -> None:
    """The store had no descriptor left for a flush, and refused every message until a restart."""
    async with asyncio.timeout(TIMEOUT), contextlib.AsyncExitStack() as exits:
        process = exits.enter_context(serving("broker", "-c", conf, "-p", 0, before=FEW))
        peer = stage.peer(address=process.address)
        await peer.create_topic(write=8, read=8)
        waits = {}
        for number in range(400):
            source = (f"127.0.0.{2 + number % 4}", 0)
            reader, writer = await asyncio.open_connection(*process.place, local_addr=source)
            exits.callback(writer.close)
            waits[asyncio.ensure_future(is_closed(reader))] = writer
        open_ones = set(waits)
        while len(open_ones) > PERMITTED - 1:
            _, open_ones = await asyncio.wait(open_ones, return_when=asyncio.FIRST_COMPLETED)
        for queue_id in range(8):
            (await peer.send(queue_id=queue_id)).require_success()
        assert len(open_ones) == PERMITTED - 1
        for wait in open_ones:
            waits[wait].write_eof()
        await asyncio.gather(*waits)
        (await stage.peer(address=process.address).send()).require_success()
        lines = [line for line in process.stop() if "refused" in line]
    # One in 10 s, not one for each of 337.
    assert 1 <= len(lines) < 40
    assert all("serverMaxConnections" in line for line in lines)


async def test_one_address_cannot_take_all_connections(conf: Path, stage: ServerStage) -> None:
    async with asyncio.timeout(TIMEOUT), contextlib.AsyncExitStack() as exits:
        process = exits.enter_context(serving("broker", "-c", conf, "-p", 0, before=FEW))
        waits = []
        for _ in range(PER_ADDRESS + 1):
            reader, writer = await asyncio.open_connection(*process.place, local_addr=("127.0.0.2", 0))
            exits.callback(writer.close)
            waits.append(asyncio.ensure_future(is_closed(reader)))
        done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        # Connections are accepted in the order in which they were made.
        assert done == {waits[-1]}
        (await stage.peer(address=process.address).send()).require_success()
        for wait in waits[:-1]:
            wait.cancel()
        lines = [line for line in process.stop() if "refused" in line]
    assert len(lines) == 1
    assert "serverMaxConnectionsPerAddress" in lines[0]


async def test_a_broker_refuses_while_it_may_not_write_and_recovers(conf: Path, stage: ServerStage) -> None:
    """The system's limit of a file's size stands for a full disk."""
    with serving("broker", "-c", conf, "-p", 0) as process:
        peer = stage.peer(address=process.address)
        await peer.create_topic(write=2, read=2)
        (await peer.send()).require_success()
        _, hard = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (4_096, hard))
        response = await peer.send(queue_id=1)
        assert response.code == ResponseCode.SYSTEM_ERROR
        assert f"{conf.parent / 'store/consumequeue/T/1'}" in (response.remark or "")
        assert "File too large" in (response.remark or "")
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (hard, hard))
        (await peer.send(queue_id=1)).require_success()
        lines = process.stop()
    assert [line for line in lines if "ERROR" in line and "File too large" in line]
    assert not [line for line in lines if "Traceback" in line]


@pytest.fixture
def sync_conf(conf: Path) -> Path:
    """The broker flushes for each send, retries at once, and keeps a send waiting for a short time."""
    keys = ("", "flushDiskType=SYNC_FLUSH", "syncFlushTimeout=100", "flushIntervalCommitLog=20")
    conf.write_text(conf.read_text() + "\n".join(keys))
    return conf


async def test_a_broker_without_descriptors_serves_again_as_soon_as_there_are_some(
    sync_conf: Path, stage: ServerStage
) -> None:
    """The flush cannot open its file, and a connection cannot be accepted; a clean stop is clean."""
    root = sync_conf.parent / "store"
    async with asyncio.timeout(TIMEOUT), contextlib.AsyncExitStack() as exits:
        process = exits.enter_context(serving("broker", "-c", sync_conf, "-p", 0))
        peer = stage.peer(address=process.address)
        await peer.create_topic(write=1, read=1)
        (await peer.send()).require_success()
        limits = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (3, limits[1]))
        late = await peer.send()
        assert late.code == ResponseCode.FLUSH_DISK_TIMEOUT
        assert "Too many open files" in (late.remark or "")
        refused = await peer.send()
        assert refused.code == ResponseCode.SERVICE_NOT_AVAILABLE
        assert (refused.remark or "").endswith(
            f"cannot flush {root / 'commitlog' / ('0' * 20)}: Too many open files"
        )
        assert (await peer.pull(0)).code == ResponseCode.SUCCESS
        waiting = asyncio.ensure_future(stage.peer(address=process.address).pull(0))
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, limits)
        assert (await waiting).code == ResponseCode.SUCCESS
        while (answer := await peer.send()).code == ResponseCode.SERVICE_NOT_AVAILABLE:
            pass
        answer.require_success()
        lines = process.stop()
    assert len([line for line in lines if "not flushed, will try again" in line]) <= 2
    assert "abort" not in [path.name for path in root.iterdir()]
