"""RECALL_MESSAGE (370): a message that waits is taken back (docs/spec/timers.md 6)."""

from __future__ import annotations

import base64

import pytest

from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.recall import RecallMessageRequestHeader
from rewindmq.protocol.message.recall_handle import RecallHandle, decode_recall_handle
from rewindmq.protocol.profile import Profile
from rewindmq.race.sim.world import EPOCH_MS
from tests.broker.timer.box import stored, waiting
from tests.support.fixtures import simulated
from tests.support.peer import Peer
from tests.support.stage import SimStage

V53 = Profile.V53
INVALID = (604, "recall handle is invalid")


async def timed(peer: Peer, key: str, delay_ms: int = 5_000, topic: str = "T") -> str:
    """Send a message; return its handle."""
    response = await peer.send(topic, properties={"UNIQ_KEY": key, "TIMER_DELAY_MS": str(delay_ms)})
    response.require_success()
    return str(response.ext["recallHandle"])


async def recall(peer: Peer, handle: str, topic: str = "T") -> RemotingCommand:
    return await peer.ask(RequestCode.RECALL_MESSAGE, RecallMessageRequestHeader(topic, handle, "PG"))


async def refused(peer: Peer, handle: str, topic: str = "T") -> tuple[int, str | None]:
    response = await recall(peer, handle, topic)
    return response.code, response.remark


@simulated(profile=V53, recall_message_enable=True)
async def test_a_recalled_message_never_comes(stage: SimStage) -> None:
    """A second recall succeeds, too; the other message of the second comes."""
    peer = stage.peer()
    await stage.at(0.5)
    handle = await timed(peer, "A")
    await timed(peer, "B")
    assert decode_recall_handle(handle) == RecallHandle("T", "broker-a", str(EPOCH_MS + 5_001), "A")
    for _ in range(2):
        response = await recall(peer, handle)
        assert (response.code, response.ext["msgId"], response.ext["MSG_REGION"]) == (0, "A", "DefaultRegion")
    deletion = waiting(stage.broker)[-1]
    assert (deletion.body, deletion.properties["TAGS"]) == (b"0", "_RECALL_TAG_")
    await stage.at(9.0)
    assert [message.properties["UNIQ_KEY"] for message in stored(stage.broker)] == ["B"]
    assert await refused(peer, handle) == (604, "recall failed, timestamp invalid")


@simulated(profile=V53)
async def test_recall_is_forbidden_unless_it_is_enabled(stage: SimStage) -> None:
    """The message is delivered; its handle is there."""
    peer = stage.peer()
    handle = await timed(peer, "A")
    assert await refused(peer, handle) == (16, "recall failed, operation is forbidden")
    await stage.at(7.0)
    assert len(stored(stage.broker)) == 1


@simulated(profile=V53)
async def test_recall_can_be_enabled_while_the_broker_runs(stage: SimStage) -> None:
    """Also the key for brokers that refuse sends."""
    peer = stage.peer()
    handle = await timed(peer, "A")

    async def change(text: bytes) -> None:
        (await peer.ask(RequestCode.UPDATE_BROKER_CONFIG, body=text)).require_success()

    await change(b"recallMessageEnable=true")
    (await recall(peer, handle)).require_success()
    await change(b"allowRecallWhenBrokerNotWriteable=false\nbrokerPermission=4")
    assert await refused(peer, handle) == (14, "recall failed, broker service not available")
    await change(b"recallMessageEnable=false")
    assert await refused(peer, handle) == (16, "recall failed, operation is forbidden")


def changed(handle: RecallHandle, **fields: str) -> str:
    return handle._replace(**fields).encode()


@simulated(profile=V53, recall_message_enable=True)
async def test_what_is_refused(stage: SimStage) -> None:
    peer = stage.peer()
    text = await timed(peer, "A")
    handle = decode_recall_handle(text)
    assert handle is not None
    for garbage in (
        "",
        "A",
        "####",
        text[:-5],
        text[1:],
        text + "=",
        base64.urlsafe_b64encode(b"v1 T").decode(),
    ):
        assert await refused(peer, garbage) == INVALID, garbage
    assert await refused(peer, changed(handle, topic="U")) == (604, "recall failed, topic not match")
    not_here = (604, "recall failed, broker service not available")
    assert await refused(peer, changed(handle, broker_name="broker-b")) == not_here
    for timestamp in ("soon", "0", "-1", str(EPOCH_MS), str(EPOCH_MS + 259_200_001), "9" * 30):
        answer = await refused(peer, changed(handle, timestamp=timestamp))
        assert answer == (604, "recall failed, timestamp invalid"), timestamp
    assert await refused(peer, text, "nowhere") == (17, "recall failed, the topic[nowhere] not exist")
    missing = await peer.ask(RequestCode.RECALL_MESSAGE, topic="T")
    assert missing.code == 1
    await stage.at(8.0)
    assert len(stored(stage.broker)) == 1


@simulated(profile=V53)
async def test_only_messages_that_wait_have_a_handle(stage: SimStage) -> None:
    peer = stage.peer()
    for properties in ({}, {"TIMER_DELAY_SEC": "0"}, {"DELAY": "3"}):
        response = await peer.send(properties=properties)
        assert (response.code, response.ext.get("recallHandle")) == (0, None)


@pytest.mark.parametrize("profile", [Profile.V42, Profile.V49])
@simulated()
async def test_older_releases_know_no_recall(stage: SimStage, profile: Profile) -> None:
    assert (await recall(stage.peer(), "A")).code == 3


@simulated(profile=V53, store={"append_topic_for_timer_delete_key": True}, recall_message_enable=True)
async def test_a_recall_may_name_the_topic(stage: SimStage) -> None:
    peer = stage.peer()
    first, _ = await timed(peer, "A"), await timed(peer, "A", topic="U")
    (await recall(peer, first)).require_success()
    await stage.at(8.0)
    assert (len(stored(stage.broker)), len(stored(stage.broker, "U"))) == (0, 1)
