"""Consumption with real servers under virtual time: division, start, filters, models, changes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rewindmq import (
    ConsumeFromWhere,
    Message,
    MessageModel,
)
from rewindmq.protocol.profile import Profile
from rewindmq.race.sim.world import EPOCH_MS
from tests.client.inbox import Inbox
from tests.support.fixtures import played
from tests.support.stage import SimStage

ALL = list(Profile)
# With so little memory every message counts as on disk, so a new group has no offset (22).
COLD: dict[str, Any] = {"physical_memory_bytes": 1}


@pytest.mark.parametrize("profile", ALL)
@played(brokers=2)
async def test_two_consumers_share_two_brokers_and_get_each_message_once(
    stage: SimStage, profile: Profile
) -> None:
    await stage.create_topic()
    first, second = Inbox(stage.world), Inbox(stage.world)
    await stage.consume(first, name="c1")
    await stage.consume(second, name="c2")
    await stage.world.sleep(5)
    await stage.fill(100)
    await stage.until(lambda: len(first.messages) + len(second.messages) == 800)
    assert len(first.messages) == len(second.messages) == 400
    places = Counter(message.message_queue for message in first.messages + second.messages)
    assert set(places.values()) == {100}
    await stage.world.sleep(10)
    assert stage.stored() == stage.stored(broker="broker-b") == dict.fromkeys(range(4), 100)


@pytest.mark.parametrize("profile", ALL)
@played()
async def test_the_queues_of_a_consumer_that_leaves_go_to_the_others(
    stage: SimStage, profile: Profile
) -> None:
    await stage.create_topic()
    first, second = Inbox(stage.world), Inbox(stage.world)
    await stage.consume(first, name="c1")
    leaver = await stage.consume(second, name="c2")
    await stage.world.sleep(5)
    assert len(leaver.process_queues) == 2 + ("%RETRY%G" in {q.topic for q in leaver.process_queues})
    await leaver.shutdown()
    await stage.fill(10)
    await stage.until(lambda: len(first.messages) == 40, 30)
    assert not second.messages


@pytest.mark.parametrize("profile", ALL)
@played(brokers=2)
async def test_a_broker_may_leave_and_come_back(stage: SimStage, profile: Profile) -> None:
    await stage.create_topic(queues=2)
    await stage.fill(5)
    inbox = Inbox(stage.world)
    consumer = await stage.consume(inbox)
    await stage.until(lambda: len(inbox.messages) == 20)
    await stage.world.sleep(12)
    await stage.brokers["broker-a"].close()
    # Routes are refreshed every 30 s; then the broker and its queues are forgotten.
    await stage.world.sleep(62)
    assert set(consumer.instance.routes.brokers) == {"broker-b"}
    assert {queue.broker_name for queue in consumer.process_queues} == {"broker-b"}
    # The broker has its store, but another address.
    await stage.start_broker("broker-a", default_topic_queue_nums=2)
    await stage.fill(1, first=5)
    await stage.until(lambda: len(inbox.messages) == 24, 60)
    await stage.world.sleep(20)
    assert Counter(inbox.bodies) == {b"%d" % number: 4 for number in range(6)}


@pytest.mark.parametrize("profile", ALL)
@played()
async def test_a_name_server_may_come_late_and_go(stage: SimStage, profile: Profile) -> None:
    await stage.create_topic(queues=1)
    inbox = Inbox(stage.world)
    await stage.stop_namesrv()
    consumer = await stage.consume(inbox)
    await stage.world.sleep(5)
    assert consumer.process_queues == {}
    await stage.start_namesrv()
    # Brokers register every 30 s, and consumers ask every 30 s.
    await stage.until(lambda: len(consumer.process_queues) >= 1, 85)
    producer = await stage.producer()
    await producer.send(Message("T", b"first"))
    await stage.until(lambda: len(inbox.messages) == 1)
    await stage.stop_namesrv()
    await stage.world.sleep(100)
    await producer.send(Message("T", b"second"))
    await stage.until(lambda: len(inbox.messages) == 2)


@pytest.mark.parametrize("profile", ALL)
@pytest.mark.parametrize(
    ("where", "timestamp", "expected"),
    [
        (ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, None, range(21)),
        (ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET, None, range(20, 21)),
        (ConsumeFromWhere.CONSUME_FROM_MAX_OFFSET, None, range(20, 21)),
        (ConsumeFromWhere.CONSUME_FROM_TIMESTAMP, EPOCH_MS + 50_000, range(10, 21)),
        (ConsumeFromWhere.CONSUME_FROM_TIMESTAMP, "20231114221410", range(10, 21)),
        # Half an hour before the consumer was made is before every message.
        (ConsumeFromWhere.CONSUME_FROM_TIMESTAMP, None, range(21)),
    ],
)
@played(store=COLD)
async def test_a_new_group_starts_where_its_option_says(
    stage: SimStage, profile: Profile, where: ConsumeFromWhere, timestamp: str | int | None, expected: range
) -> None:
    await stage.create_topic(queues=1)
    await stage.fill(10)
    await stage.world.sleep(60 - stage.world.now)
    await stage.fill(10, first=10)
    inbox = Inbox(stage.world)
    await stage.consume(inbox, consume_from_where=where, consume_timestamp=timestamp)
    await stage.world.sleep(3)
    await stage.fill(1, first=20)
    await stage.world.sleep(3)
    got = sorted(int(body) for body in inbox.bodies)
    # The nearest message to a time between two groups of them may be the last of the first group (4.x).
    if where is ConsumeFromWhere.CONSUME_FROM_TIMESTAMP and timestamp and profile is not Profile.V53:
        assert got in (list(expected), [9, *expected])
    else:
        assert got == list(expected)


@pytest.mark.parametrize("profile", [Profile.V42, Profile.V49])
@played()
async def test_a_new_group_on_a_recent_topic_starts_at_0_whatever_its_option_says(
    stage: SimStage, profile: Profile
) -> None:
    """docs/spec/broker.md B.9, docs/spec/client.md C.9: QUERY_CONSUMER_OFFSET (14) returns 0."""
    await stage.create_topic(queues=1)
    await stage.fill(5)
    inbox = Inbox(stage.world)
    await stage.consume(inbox, consume_from_where=ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET)
    await stage.until(lambda: len(inbox.messages) == 5)


@pytest.mark.parametrize("profile", ALL)
@played()
async def test_only_messages_with_a_subscribed_tag_arrive(stage: SimStage, profile: Profile) -> None:
    await stage.create_topic(queues=1)
    inbox = Inbox(stage.world)
    await stage.consume(inbox, expression="TagA || TagB")
    await stage.world.sleep(2)
    producer = await stage.producer()
    # "Aa" and "BB" have the same hash: the broker passes both, and the client compares the text.
    for tag in ("TagA", "TagB", "TagC", None, "Aa"):
        await producer.send(Message("T", (tag or "none").encode(), tag))
    await stage.world.sleep(2)
    assert sorted(inbox.bodies) == [b"TagA", b"TagB"]
    await stage.world.sleep(12)
    assert stage.stored() == {0: 5}


@played()
async def test_a_new_expression_counts_after_the_clock_was_set_back(stage: SimStage) -> None:
    """Brokers ignore a subscription with a lower version, and the version is a time."""
    await stage.create_topic(queues=1)
    inbox = Inbox(stage.world)
    consumer = await stage.consume(inbox, expression="A")
    await stage.world.sleep(2)
    stage.world.wall_ahead_ms -= 7_200_000
    consumer.subscribe("T", "B")
    # The pull with the old expression is suspended for up to 20 s.
    await stage.world.sleep(25)
    producer = await stage.producer()
    await producer.send(Message("T", b"b", "B"))
    await stage.world.sleep(2)
    assert inbox.bodies == [b"b"]


@played()
async def test_a_tag_of_equal_hash_is_filtered_by_the_client(
    stage: SimStage, caplog: pytest.LogCaptureFixture
) -> None:
    await stage.create_topic(queues=1)
    inbox = Inbox(stage.world)
    await stage.consume(inbox, expression="Aa")
    producer = await stage.producer()
    for tag in ("Aa", "BB"):
        await producer.send(Message("T", tag.encode(), tag))
    await stage.world.sleep(5)
    assert inbox.bodies == [b"Aa"]
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.mark.parametrize("profile", ALL)
@played()
async def test_broadcasting_consumers_each_get_everything_and_store_offsets_locally(
    stage: SimStage, tmp_path: Path, profile: Profile
) -> None:
    await stage.create_topic()
    await stage.fill(10)
    options: dict[str, Any] = {"message_model": MessageModel.BROADCASTING}
    inboxes = [Inbox(stage.world), Inbox(stage.world)]
    members = [
        await stage.consume(inbox, name=f"m{number}", offset_root=tmp_path / f"m{number}", **options)
        for number, inbox in enumerate(inboxes)
    ]
    await stage.until(lambda: [len(inbox.messages) for inbox in inboxes] == [40, 40])
    await members[0].shutdown()
    assert (tmp_path / "m0" / "127.0.0.1@m0" / "G" / "offsets.json").exists()
    assert stage.stored() == {}
    await stage.fill(1, first=10)
    again = Inbox(stage.world)
    await stage.consume(again, name="m0", offset_root=tmp_path / "m0", **options)
    await stage.until(lambda: len(again.messages) == 4)
    assert set(again.bodies) == {b"10"}
