"""A broker process with the kernel over a real socket, killed; its store opens in pure Python."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from pathlib import Path

import pytest

import rewindmq
from rewindmq.broker.store.config import StoreConfig
from rewindmq.broker.store.store import MessageStore
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.message.record import crc_ok, decode_records
from tests.protocol.remoting.remoting_stage import RawPeer
from tests.speedups.requests import KINDS, send
from tests.support.process import command, serving
from tests.support.unwritable import immutable

_MESSAGES = 300
_QUEUES = 4


@pytest.fixture(autouse=True)
def kernel(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let new processes find the kernel."""
    folder = tmp_path / "site"
    folder.mkdir()
    shutil.copy(library, folder / "rewindmq_speedups.abi3.so")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setenv("REWINDMQ_PURE", "0")


async def send_all(address: str) -> list[int]:
    """Make the topic, then send all messages in two writes; return the opaques of the responses."""
    host, _, port = address.rpartition(":")
    peer = RawPeer(*await asyncio.open_connection(host, int(port)))
    peer.writer.write(send(opaque=1_000))
    opaques = [(await peer.receive()).require_success().opaque]
    for half in (range(_MESSAGES // 2), range(_MESSAGES // 2, _MESSAGES)):
        peer.writer.write(
            b"".join(
                send(queue_id=n % _QUEUES, body=b"%d" % n * n, opaque=n, kind=KINDS[n % 3]) for n in half
            )
        )
    opaques += [(await peer.receive()).require_success().opaque for _ in range(_MESSAGES)]
    await peer.close()
    return opaques


def test_what_a_killed_process_acknowledged_is_in_its_store(tmp_path: Path) -> None:
    told = subprocess.run(command("--version"), capture_output=True, text=True, check=True).stdout
    assert told == f"rewindmq {rewindmq.__version__} (with rewindmq-speedups {rewindmq.__version__})\n"
    root = tmp_path / "store"
    conf = tmp_path / "broker.conf"
    conf.write_text("mappedFileSizeCommitLog=65536\nmappedFileSizeConsumeQueue=1200\n")
    with serving("broker", "-p", "0", "--root", str(root), "-c", str(conf)) as broker:
        opaques = asyncio.run(send_all(broker.address))
        broker.kill()
    assert opaques == [1_000, *range(_MESSAGES)]
    config = StoreConfig(mapped_file_size_commit_log=65_536, mapped_file_size_consume_queue=1_200)
    store = MessageStore(root, config, lambda: 1_795_323_546_451)
    store.open()
    try:
        bodies: list[bytes] = []
        for queue_id in range(_QUEUES):
            offset = 0
            while offset < store.max_offset("T", queue_id):
                read = store.get_message("T", queue_id, offset, 32, None)
                messages = decode_records(read.body)
                assert all(map(crc_ok, messages))
                assert [message.queue_offset for message in messages] == list(
                    range(offset, read.next_begin_offset)
                )
                bodies += [message.body for message in messages]
                offset = read.next_begin_offset
    finally:
        store.close()
    assert sorted(bodies) == sorted([b"hello", *(b"%d" % n * n for n in range(_MESSAGES))])


async def ask_in_one_write(address: str, body: bytes) -> list[int]:
    """Send 20 messages in one write; return the codes of the responses."""
    host, _, port = address.rpartition(":")
    peer = RawPeer(*await asyncio.open_connection(host, int(port)))
    peer.writer.write(b"".join(send(queue_id=n % _QUEUES, body=body, opaque=n) for n in range(20)))
    codes = [(await peer.receive()).code for _ in range(20)]
    await peer.close()
    return codes


def test_runs_are_refused_while_a_mapped_file_is_unwritable(tmp_path: Path) -> None:
    root = tmp_path / "store"
    with serving("broker", "-p", "0", "--root", str(root)) as broker:
        asyncio.run(send_all(broker.address))
        for file in (*(root / "commitlog").iterdir(), root / "consumequeue/T/1/00000000000000000000"):
            assert asyncio.run(ask_in_one_write(broker.address, b"kept")) == [ResponseCode.SUCCESS] * 20
            with immutable(file):
                codes = asyncio.run(ask_in_one_write(broker.address, b"refused"))
            # Python stores what the run's other queues can take.
            refused = 20 if "commitlog" in str(file) else 20 // _QUEUES
            assert codes.count(ResponseCode.SYSTEM_ERROR) == refused
        assert asyncio.run(ask_in_one_write(broker.address, b"kept")) == [ResponseCode.SUCCESS] * 20
        broker.stop()
    store = MessageStore(root, StoreConfig(), lambda: 1_795_323_546_451)
    store.open()
    ends = [store.max_offset("T", queue_id) for queue_id in range(_QUEUES)]
    store.close()
    assert sum(ends) == 1 + _MESSAGES + 3 * 20 + 20 - 20 // _QUEUES
