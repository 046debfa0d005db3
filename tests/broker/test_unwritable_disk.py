"""A broker process whose store becomes unwritable while its files are mapped: it refuses sends and lives."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.message.record import decode_records
from tests.support.answers import body_of
from tests.support.peer import Peer
from tests.support.process import TIMEOUT, serving
from tests.support.stage import ServerStage
from tests.support.unwritable import immutable, loop_mount

KEYS = ("mappedFileSizeCommitLog=1048576", "mappedFileSizeConsumeQueue=60000", "brokerName=broker-a")


def write_conf(folder: Path, *more: str) -> Path:
    path = folder / "broker.conf"
    path.write_text("\n".join((*KEYS, *more)))
    return path


async def refused(peer: Peer) -> str:
    """Return the remark of a refused send."""
    response = await peer.send(body=b"refused")
    assert response.code in (ResponseCode.SYSTEM_ERROR, ResponseCode.SERVICE_NOT_AVAILABLE)
    assert response.remark is not None
    return response.remark


async def bodies(peer: Peer) -> list[bytes]:
    response = (await peer.pull(0)).require_success()
    return [message.body for message in decode_records(body_of(response))]


@pytest.mark.parametrize("folder", ["commitlog", "consumequeue/T/0"])
async def test_an_immutable_file_is_refused_and_writable_again(
    tmp_path: Path, stage: ServerStage, folder: str
) -> None:
    """SIGBUS killed the broker."""
    conf = write_conf(tmp_path, f"storePathRootDir={tmp_path / 'store'}")
    async with asyncio.timeout(TIMEOUT):
        with serving("broker", "-c", conf, "-p", 0) as process:
            peer = stage.peer(address=process.address)
            (await peer.send(body=b"old")).require_success()
            (path,) = (tmp_path / "store" / folder).iterdir()
            with immutable(path):
                for _ in range(3):
                    assert f"{path}: Operation not permitted" in await refused(peer)
                    assert await bodies(peer) == [b"old"]
            (await peer.send(body=b"new")).require_success()
            assert await bodies(peer) == [b"old", b"new"]
            lines = [line for line in process.stop() if "refused" in line]
    assert len(lines) == 1


async def test_a_file_system_that_remounts_itself_read_only_loses_nothing_acknowledged(
    tmp_path: Path, stage: ServerStage
) -> None:
    """As ext4 does with errors=remount-ro; some kernels still let mapped pages change, and a flush fails."""
    with loop_mount(tmp_path) as mounted:
        store = mounted.folder / "store"
        conf = write_conf(
            tmp_path, f"storePathRootDir={store}", "flushDiskType=SYNC_FLUSH", "syncFlushTimeout=1000"
        )
        async with asyncio.timeout(TIMEOUT):
            with serving("broker", "-c", conf, "-p", 0) as process:
                peer = stage.peer(address=process.address)
                (await peer.send(body=b"old")).require_success()
                mounted.fail()
                assert (await peer.send(body=b"lost")).code != ResponseCode.SUCCESS
                for _ in range(3):
                    assert f"{store}/commitlog/{0:020d}: Read-only file system" in await refused(peer)
                assert b"old" in await bodies(peer)
                process.kill()
            mounted.unmount()
            mounted.mount()
            with serving("broker", "-c", conf, "-p", 0) as process:
                peer = stage.peer(address=process.address)
                assert await bodies(peer) == [b"old"]
                (await peer.send(body=b"new")).require_success()
                process.stop()
