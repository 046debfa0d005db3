"""Delay levels: when a delayed message appears, and that none is lost (docs/spec/broker.md B.12)."""

from __future__ import annotations

from typing import Any, cast

import pytest

from rewindmq.broker.store.model import StoredMessage
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.message import Message, MessageExt
from rewindmq.protocol.message.batch import encode_batch
from rewindmq.protocol.message.properties import parse_properties
from rewindmq.protocol.message.record import decode_records
from rewindmq.protocol.message.sysflag import MessageSysFlag
from rewindmq.protocol.names import SCHEDULE_TOPIC
from rewindmq.protocol.profile import Profile
from rewindmq.race.sim.world import EPOCH_MS
from tests.support.answers import body_of
from tests.support.fixtures import simulated
from tests.support.peer import Peer
from tests.support.stage import SimStage

PROFILES = [Profile.V42, Profile.V49, Profile.V53]


async def pulled(peer: Peer, topic: str = "T", offset: int = 0, **options: Any) -> list[MessageExt]:
    response = await peer.pull(offset, topic, **options)
    return decode_records(body_of(response) or b"")


def level(number: int, **properties: str) -> dict[str, str]:
    return {**properties, "DELAY": str(number)}


def depth(stage: SimStage, topic: str, queue_id: int = 0) -> int:
    return int(stage.broker.context.store.max_offset(topic, queue_id))


@pytest.mark.scenario("B25", "v42", "v49", "v53")
@pytest.mark.parametrize("profile", PROFILES)
@simulated()
async def test_B25_a_message_of_level_3_is_delivered_10_s_later(stage: SimStage, profile: Profile) -> None:
    """A message of delay level 3 stored at 0 reaches a waiting consumer at 10.0 to 10.2 s, with a new store
    time and offset."""
    peer = stage.peer()
    await peer.create_topic()
    await peer.fill(3)
    given = level(3, TAGS="A", UNIQ_KEY="U")
    answer = await peer.send(body=b"late", properties=given, born_timestamp=77)
    # The requested queue, with the offset of the schedule topic's queue.
    assert (answer.code, answer.ext["queueId"], answer.ext["queueOffset"]) == (0, 0, 0)
    sent_at = stage.runtime.clock.monotonic()
    response = await peer.pull(3, hold_ms=15_000, subscription="A")
    assert 10.0 <= stage.runtime.clock.monotonic() - sent_at <= 10.2
    (message,) = decode_records(body_of(response))
    assert (message.body, message.queue_offset, message.born_timestamp) == (b"late", 3, 77)
    (scheduled,) = await pulled(peer, SCHEDULE_TOPIC, queue_id=2)
    assert 10_000 <= message.store_timestamp - scheduled.store_timestamp <= 10_200
    assert message.commit_log_offset > scheduled.commit_log_offset
    kept = given | {"REAL_TOPIC": "T", "REAL_QID": "0", "CLUSTER": "DefaultCluster"}
    if profile == Profile.V53:
        kept |= {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}
    assert message.properties == scheduled.properties == kept


@pytest.mark.scenario("B26", "v42", "v49", "v53")
@pytest.mark.parametrize("profile", PROFILES)
@simulated()
async def test_B26_level_25_is_stored_as_level_18(stage: SimStage, profile: Profile) -> None:
    """A level beyond the last level counts as the last level."""
    peer = stage.peer()
    (await peer.send(properties=level(25))).require_success()
    (message,) = await pulled(peer, SCHEDULE_TOPIC, queue_id=17)
    assert message.properties["DELAY"] == "18"
    assert depth(stage, "T") == 0


@simulated()
async def test_each_level_delivers_in_order_and_never_early(stage: SimStage) -> None:
    """Levels 1, 2 and 4 mixed, from several moments of the 100 ms grid."""
    peer = stage.peer()
    await peer.create_topic()
    for number in range(30):
        await stage.at(2.0 + number * 0.037)
        (await peer.send(body=b"%d" % number, properties=level((1, 2, 4)[number % 3]))).require_success()
    await stage.at(40.0)
    messages = await pulled(peer)
    assert len(messages) == 30
    for delay_level, delay in ((1, 1_000), (2, 5_000), (4, 30_000)):
        scheduled = await pulled(peer, SCHEDULE_TOPIC, queue_id=delay_level - 1)
        mine = [message for message in messages if message.properties["DELAY"] == str(delay_level)]
        assert [message.body for message in mine] == [message.body for message in scheduled]
        waits = [
            late.store_timestamp - early.store_timestamp for early, late in zip(scheduled, mine, strict=True)
        ]
        assert all(delay <= wait <= delay + 100 for wait in waits), waits


@simulated(store={"message_delay_level": "1s 3s"})
async def test_levels_are_configured(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic()
    await stage.at(1.0)
    (await peer.send(properties=level(9))).require_success()
    await stage.at(3.9)
    assert depth(stage, "T") == 0
    await stage.at(4.2)
    assert depth(stage, "T") == 1


@pytest.mark.parametrize("properties", [level(0), level(-1), {}])
@simulated()
async def test_level_0_is_no_delay(stage: SimStage, properties: dict[str, str]) -> None:
    peer = stage.peer()
    (await peer.send(properties=properties)).require_success()
    assert depth(stage, "T") == 1


@pytest.mark.parametrize("value", ["soon", "3.5", "99999999999", "--3", "\u0663", "-"])
@simulated()
async def test_a_level_that_is_no_number_is_refused(stage: SimStage, value: str) -> None:
    answer = await stage.peer().send(properties=f"DELAY\x01{value}")
    assert answer.code == ResponseCode.MESSAGE_ILLEGAL
    assert stage.broker.context.store.max_commit_log_offset == 0


@simulated()
async def test_a_batch_cannot_be_delayed(stage: SimStage) -> None:
    peer = stage.peer()
    batch = encode_batch([Message("T", b"x", delay_level=3)])
    answer = await peer.send(body=batch, code=RequestCode.SEND_BATCH_MESSAGE)
    assert answer.code == ResponseCode.MESSAGE_ILLEGAL
    assert stage.broker.context.store.max_commit_log_offset == 0


@simulated()
async def test_wait_stays_in_delayed_messages(stage: SimStage) -> None:
    """RocketMQ strips WAIT from ordinary records only (docs/spec/store.md 10.1)."""
    peer = stage.peer()
    (await peer.send(properties=level(1, WAIT="true"))).require_success()
    (message,) = await pulled(peer, SCHEDULE_TOPIC)
    assert message.properties["WAIT"] == "true"


@simulated()
async def test_progress_is_saved_every_10_s_and_at_a_clean_stop(stage: SimStage) -> None:
    file = stage.root / "broker-a/config/delayOffset.json"
    peer = stage.peer()
    for delay_level in (1, 2, 2):
        (await peer.send(properties=level(delay_level))).require_success()
    await stage.at(9.9)
    assert not file.exists()
    await stage.at(10.2)
    assert file.read_text() == '{\n\t"offsetTable":{1:1,2:2\n\t}\n}'
    (await peer.send(properties=level(1))).require_success()
    await stage.at(12.0)
    await stage.broker.close()
    assert "1:2,2:2" in file.read_text()
    await stage.start_broker()
    await stage.at(40.0)
    # Nothing comes twice after a clean stop.
    assert depth(stage, "T") == 4


@pytest.mark.parametrize("saved", ["{2:-5}", "{2:1000}", "{}", '{"2":1, "77":3}'])
@simulated()
async def test_saved_progress_outside_of_the_queue_is_corrected(stage: SimStage, saved: str) -> None:
    """Below the first message, delivery continues there; beyond the last, it waits for new messages."""
    peer = stage.peer()
    for _ in range(2):
        (await peer.send(properties=level(2))).require_success()
    await stage.broker.close()
    (stage.root / "broker-a/config/delayOffset.json").write_text(f'{{"offsetTable":{saved}}}')
    await stage.start_broker()
    await stage.at(20.0)
    first = {"{2:1000}": 2, '{"2":1, "77":3}': 1}.get(saved, 0)
    assert depth(stage, "T") == 2 - first
    (await stage.peer("c2").send(properties=level(2))).require_success()
    await stage.at(30.0)
    assert depth(stage, "T") == 3 - first


@simulated()
async def test_a_message_of_an_earlier_start_due_too_far_ahead_waits_its_delay(stage: SimStage) -> None:
    """The entry says "in an hour and 5 s", because the wall clock was set back; RocketMQ would deliver at
    once (4.9.4 ``correctDeliverTimestamp``)."""
    store = stage.broker.context.store
    properties = b"DELAY\x012\x02REAL_TOPIC\x01T\x02REAL_QID\x010"
    stage.world.wall_ahead_ms = 3_600_000
    # Past the hook, as a message is that the broker finds at its start.
    store.put_message(StoredMessage(SCHEDULE_TOPIC, 1, b"x", properties))
    stage.world.wall_ahead_ms = 0
    await stage.at(4.9)
    assert depth(stage, "T") == 0
    await stage.at(5.1)
    assert depth(stage, "T") == 1


@pytest.mark.parametrize(
    "properties",
    [
        b"DELAY\x011",
        b"DELAY\x011\x02REAL_TOPIC\x01T",
        b"DELAY\x011\x02REAL_TOPIC\x01T\x02REAL_QID\x01-1",
        b"DELAY\x011\x02REAL_TOPIC\x01T\x02REAL_QID\x01x",
        b"DELAY\x011\x02REAL_TOPIC\x01RMQ_SYS_TRANS_HALF_TOPIC\x02REAL_QID\x010",
        b"DELAY\x011\x02REAL_TOPIC\x01" + b"t" * 200 + b"\x02REAL_QID\x010",
    ],
)
@simulated()
async def test_an_undeliverable_message_does_not_block_its_level(stage: SimStage, properties: bytes) -> None:
    stage.broker.context.store.put_message(StoredMessage(SCHEDULE_TOPIC, 0, b"bad", properties))
    peer = stage.peer()
    (await peer.send(body=b"good", properties=level(1))).require_success()
    await stage.at(4.0)
    assert [message.body for message in await pulled(peer)] == [b"good"]


@pytest.mark.parametrize(("profile", "pause"), [(Profile.V42, 10.0), (Profile.V49, 0.1), (Profile.V53, 0.1)])
@simulated()
async def test_a_delivery_that_fails_is_tried_again(
    stage: SimStage, monkeypatch: pytest.MonkeyPatch, profile: Profile, pause: float
) -> None:
    peer = stage.peer()
    (await peer.send(body=b"1", properties=level(1))).require_success()
    (await peer.send(body=b"2", properties=level(1))).require_success()
    writer = stage.broker.context.store._writer
    monkeypatch.setattr(writer, "_make_room", lambda *_: False)
    limit = writer._log.buffer
    writer._log.room_end, room_end = 0, writer._log.room_end
    assert limit is writer._log.buffer
    await stage.at(1.5)
    assert depth(stage, "T") == 0
    writer._log.room_end = room_end
    monkeypatch.undo()
    await stage.at(1.0 + pause - 0.05 if pause > 1 else 1.5)
    assert depth(stage, "T") == 0
    await stage.at(1.3 + pause + 0.5)
    assert [message.body for message in await pulled(peer)] == [b"1", b"2"]


@simulated()
async def test_half_messages_are_never_delayed(stage: SimStage) -> None:
    """Their level waits for the commit; RocketMQ would throw the half message away when it is due."""
    delays = stage.broker.context.delays.hook
    text = "DELAY\x013"
    half = StoredMessage("RMQ_SYS_TRANS_HALF_TOPIC", 0, b"", text.encode())
    prepared = StoredMessage("T", 0, b"", text.encode(), sys_flag=int(MessageSysFlag.TRANSACTION_PREPARED))
    assert delays.before_put(half, text) is half
    assert delays.before_put(prepared, text) is prepared
    committed = StoredMessage("T", 0, b"", text.encode(), sys_flag=int(MessageSysFlag.TRANSACTION_COMMIT))
    assert delays.before_put(committed, text).topic == SCHEDULE_TOPIC


@simulated()
async def test_properties_are_not_doubled(stage: SimStage) -> None:
    """A message that was in the schedule topic before is delayed again like a new message."""
    text = "REAL_TOPIC\x01old\x02DELAY\x0199\x02REAL_QID\x019\x02A\x01b\x01c\x02K\x01v"
    message = StoredMessage("T", 3, b"", text.encode())
    diverted = stage.broker.context.delays.hook.before_put(message, text)
    expected = {"REAL_TOPIC": "T", "REAL_QID": "3", "DELAY": "18", "K": "v"}
    assert parse_properties(diverted.properties.decode()) == expected
    assert diverted.properties.count(b"REAL_TOPIC") == 1


@simulated()
async def test_an_idle_broker_does_not_look(stage: SimStage) -> None:
    """Checking 18 levels ten times a second is expensive; the broker checks only levels with messages."""
    service = cast("Any", stage.broker.context.delays.service)
    assert len(service._looks) == 18
    await stage.at(1.5)
    assert not service._looks
    (await stage.peer().send(properties=level(18))).require_success()
    assert list(service._looks) == [18]


@simulated()
async def test_many_due_messages_leave_turns_to_others(stage: SimStage) -> None:
    peer = stage.peer()
    for number in range(300):
        (await peer.send(body=b"%d" % number, properties=level(1))).require_success()
    begin = EPOCH_MS + 1_000
    await stage.at(3.0)
    messages: list[MessageExt] = []
    while len(messages) < 300:
        messages += await pulled(peer, offset=len(messages))
    assert [message.body for message in messages] == [b"%d" % number for number in range(300)]
    assert all(message.store_timestamp >= begin for message in messages)
