"""Topics with ``cleanup.policy=COMPACTION`` at the broker: refused, served, waited for, found again."""

from __future__ import annotations

import asyncio
import shutil
from typing import Any

from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.admin import CreateTopicRequestHeader, GetTopicStatsInfoRequestHeader
from rewindmq.protocol.header.offset import GetMaxOffsetRequestHeader, GetMinOffsetRequestHeader
from rewindmq.protocol.header.pull import PullMessageResponseHeader
from rewindmq.protocol.message import Message
from rewindmq.protocol.message.batch import encode_batch
from rewindmq.protocol.message.record import decode_records
from rewindmq.race.sim.world import EPOCH_MS
from tests.support.answers import body_of
from tests.support.fixtures import simulated
from tests.support.peer import Peer
from tests.support.stage import SimStage

# Of a file that holds 9 messages.
SMALL: dict[str, Any] = {"compaction_cq_mapped_file_size": 460, "compaction_mapped_file_size": 20_000}


async def create(peer: Peer) -> None:
    header = CreateTopicRequestHeader(
        "T", "TBW102", 1, 1, 6, "SINGLE_TAG", attributes="+cleanup.policy=COMPACTION"
    )
    (await peer.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, header)).require_success()


async def fill(peer: Peer, count: int) -> None:
    for number in range(count):
        (await peer.send(properties={"KEYS": f"k{number}"})).require_success()


def offsets(response: RemotingCommand) -> list[int]:
    return [message.queue_offset for message in decode_records(body_of(response.require_success()))]


async def bounds(peer: Peer) -> tuple[int, int]:
    return (
        await peer.number(RequestCode.GET_MIN_OFFSET, GetMinOffsetRequestHeader("T", 0)),
        await peer.number(RequestCode.GET_MAX_OFFSET, GetMaxOffsetRequestHeader("T", 0)),
    )


@simulated()
async def test_a_message_without_key_is_refused_with_13(stage: SimStage) -> None:
    peer = stage.peer()
    await create(peer)
    for properties in ({}, {"KEYS": "  "}, {"TAGS": "KEYS"}):
        refused = await peer.send(properties=properties)
        assert refused.code == ResponseCode.MESSAGE_ILLEGAL
        assert refused.remark == "Required message key is missing"
    batch = encode_batch([Message("T", b"a", keys="k"), Message("T", b"b")])
    assert (await peer.send(body=batch, code=RequestCode.SEND_BATCH_MESSAGE)).code == 13
    assert await bounds(peer) == (0, 0)
    batch = encode_batch([Message("T", b"a", keys="k"), Message("T", b"b", keys="k")])
    (await peer.send(body=batch, code=RequestCode.SEND_BATCH_MESSAGE)).require_success()
    await peer.heartbeat()
    assert offsets(await peer.pull(0)) == [0, 1]


@simulated()
async def test_pulls_wait_for_messages_and_searches_find_them(stage: SimStage) -> None:
    peer = stage.peer()
    await create(peer)
    await peer.heartbeat()
    held = asyncio.ensure_future(peer.pull(0, hold_ms=15_000))
    await stage.at(5.0)
    await peer.send(properties={"KEYS": "a"})
    assert offsets(await held) == [0]
    assert stage.runtime.clock.monotonic() == 5.0
    await stage.at(6.0)
    await peer.send(properties={"KEYS": "a"})
    assert await peer.search(EPOCH_MS + 5_900) == 1
    response = await peer.pull(7)
    assert (response.code, response.remark) == (21, "OFFSET_OVERFLOW_BADLY")
    stats = await peer.ask(RequestCode.GET_TOPIC_STATS_INFO, GetTopicStatsInfoRequestHeader("T"))
    stats.require_success()


@simulated(store=SMALL)
async def test_the_compaction_store_alone_is_enough(stage: SimStage) -> None:
    peer = stage.peer()
    await create(peer)
    await fill(peer, 20)
    await stage.broker.close()
    for folder in ("commitlog", "consumequeue"):
        shutil.rmtree(stage.root / "broker-a" / folder)
    await stage.start_broker(store=SMALL)
    peer = stage.peer()
    await peer.heartbeat()
    assert await bounds(peer) == (0, 20)
    await fill(peer, 1)
    response = await peer.pull(18)
    assert offsets(response) == [18, 19, 20]
    assert response.decode_header(PullMessageResponseHeader).next_begin_offset == 21
    assert offsets(await peer.pull(20)) == [20]
    assert (await peer.send(properties={})).code == 13
