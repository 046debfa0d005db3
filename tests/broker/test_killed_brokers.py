"""Brokers killed at random moments: each store verifies, and a client reads everything acknowledged."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Final

import pytest

from rewindmq.pipeline.verify.job import prepare
from rewindmq.pipeline.verify.report import Tally, VerifyReport, render_text
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import ConnectError, ConnectionLostError
from rewindmq.protocol.header.send import SendMessageResponseHeader
from rewindmq.protocol.message.record import decode_records
from tests.support.answers import body_of
from tests.support.peer import Peer
from tests.support.process import serving
from tests.support.stage import ServerStage

QUEUES: Final = 3
CI_ROUNDS: Final = 10
FULL_ROUNDS: Final = 200
CONF: Final = "mappedFileSizeCommitLog=65536\nmappedFileSizeConsumeQueue=1200\nflushDiskType={}\n"

# Queue and offset to body.
Acknowledged = dict[tuple[int, int], bytes]


def verified(store: Path) -> VerifyReport:
    """Do what ``rewindmq pipeline verify`` does, without Spark."""
    import pyarrow as pa

    from rewindmq.pipeline.verify.judge import judge

    tally = Tally()
    batches = [batch for task in prepare(0, store, tally).work.tasks for batch in task.run()]
    if batches:
        rows = pa.Table.from_batches(batches).sort_by(
            [("store", "ascending"), ("position", "ascending"), ("kind", "ascending")]
        )
        for found in judge(iter(rows.combine_chunks().to_batches())):
            tally.add_rows([tuple(row.values()) for row in found.to_pylist()])
    return VerifyReport(str(store), None, tally.checks(0))


async def send_for_ever(
    peer: Peer, sender: int, acknowledged: Acknowledged, wanted: asyncio.Semaphore
) -> None:
    """Send until the broker is gone; release ``wanted`` once for each acknowledged message."""
    number = 0
    while True:
        body = b"%d-%d-%d:" % (len(acknowledged), sender, number) + bytes(number * 37 % 2_000)
        try:
            answer = await peer.send("Kept", body, queue_id=sender % QUEUES)
        except (ConnectError, ConnectionLostError):
            return
        stored = answer.require_success().decode_header(SendMessageResponseHeader)
        acknowledged[stored.queue_id, stored.queue_offset] = body
        number += 1
        wanted.release()


async def read_all(peer: Peer) -> Acknowledged:
    """Pull every message of the topic."""
    found: Acknowledged = {}
    for queue_id in range(QUEUES):
        offset = 0
        while True:
            answer = await peer.pull(offset, "Kept", queue_id=queue_id, group="Readers")
            if answer.code != ResponseCode.SUCCESS:
                break
            for message in decode_records(body_of(answer)):
                assert message.queue_offset == offset
                found[queue_id, offset] = message.stored_body
                offset += 1
    return found


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("flush", ["SYNC_FLUSH", "ASYNC_FLUSH"])
async def test_a_broker_killed_at_any_moment_keeps_what_it_acknowledged(
    tmp_path: Path, stage: ServerStage, flush: str, full: bool
) -> None:
    chance = Random(flush)
    store, conf = tmp_path / "store", tmp_path / "broker.conf"
    conf.write_text(CONF.format(flush) + f"storePathRootDir={store}\n")
    acknowledged: Acknowledged = {}
    for _ in range((FULL_ROUNDS if full else CI_ROUNDS) // 2):
        with serving("broker", "-c", conf, "-p", 0) as process:
            peer = stage.peer(address=process.address)
            await peer.heartbeat("Readers", ("Kept",))
            await peer.create_topic("Kept", write=QUEUES, read=QUEUES)
            found = await read_all(peer)
            assert acknowledged.items() <= found.items()
            wanted = asyncio.Semaphore(0)
            senders = [
                asyncio.create_task(send_for_ever(peer, sender, acknowledged, wanted)) for sender in range(5)
            ]
            for _ in range(chance.randint(1, 120)):
                await wanted.acquire()
            process.kill()
            await asyncio.gather(*senders)
            await peer.client.close()
        report = verified(store)
        assert sum(check.checked for check in report.checks) > len(acknowledged)
        assert report.is_intact, render_text(report)
