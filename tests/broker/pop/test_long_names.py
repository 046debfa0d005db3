"""Retry topics longer than 127 bytes, whose messages are V2 records (RocketMQ 5.5 ``MessageVersion``)."""

from __future__ import annotations

from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.message.record import MAGIC_V2
from rewindmq.protocol.profile import Profile
from tests.broker.pop.asking import ack_all, pop
from tests.support.fixtures import simulated
from tests.support.stage import SimStage

TOPIC, GROUP = "T" * 100, "G" * 140
RETRY = f"%RETRY%{GROUP}_{TOPIC}"


@simulated(profile=Profile.V53)
async def test_messages_with_a_long_retry_topic_come_again(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic(TOPIC, write=1, read=1)
    (await peer.send(TOPIC, body=b"again")).require_success()
    assert (await pop(peer, TOPIC, group=GROUP)).bodies == [b"again"]
    await stage.at(20.0)
    popped = await pop(peer, TOPIC, group=GROUP)
    assert (popped.bodies, popped.messages[0].topic) == ([b"again"], RETRY)
    store = stage.broker.context.store
    entry = store.entry(RETRY, 0, 0)
    assert entry is not None
    record = store.look_message(entry[0])
    assert record is not None
    assert int.from_bytes(record[4:8], "big") == MAGIC_V2
    await ack_all(peer, popped.messages, GROUP)
    await stage.at(60.0)
    assert (await pop(peer, TOPIC, group=GROUP)).bodies == []


@simulated(profile=Profile.V53)
async def test_a_retry_topic_that_no_folder_can_have_is_refused(stage: SimStage) -> None:
    """Otherwise the messages could not be stored again, and would be lost."""
    peer = stage.peer()
    await peer.create_topic(TOPIC, write=1, read=1)
    (await peer.send(TOPIC, body=b"kept")).require_success()
    refused = await pop(peer, TOPIC, group="G" * 148)
    assert refused.response.code == ResponseCode.INVALID_PARAMETER
    assert "too long" in (refused.response.remark or "")
    assert (await pop(peer, TOPIC, group="G" * 147)).bodies == [b"kept"]
