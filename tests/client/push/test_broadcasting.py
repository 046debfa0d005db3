"""Broadcasting groups under virtual time: their own offsets, and the effect of resets (D15, D16)."""

from __future__ import annotations

from pathlib import Path

import pytest

from rewindmq import ClientError, ConsumeFromWhere, MessageModel, PushConsumer
from rewindmq.client.consume.local_offset_store import LocalFileOffsetStore
from rewindmq.client.core.client_config import make_config
from rewindmq.client.core.instance import ClientInstance
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.sim import World
from tests.client.inbox import Inbox
from tests.client.race_props import reset
from tests.support.fixtures import played
from tests.support.stage import SimStage

Q0, Q1 = MessageQueue("T", "broker-a", 0), MessageQueue("T", "broker-a", 1)


async def broadcaster(stage: SimStage, inbox: Inbox, root: Path, name: str) -> PushConsumer:
    return await stage.consume(
        inbox, name=name, message_model=MessageModel.BROADCASTING, offset_root=root / name
    )


@pytest.mark.scenario("D16", "v53s")
@played(profile=Profile.V53, reset_mode=ResetMode.SERVER)
async def test_D16_only_the_consumer_that_pulls_first_rewinds(stage: SimStage, tmp_path: Path) -> None:
    """A server-side reset of consumers M1 and M2 leaves one mark, and the first pull consumes it."""
    await stage.create_topic(queues=1)
    await stage.fill(20)
    inboxes = [Inbox(stage.world), Inbox(stage.world)]
    for number, inbox in enumerate(inboxes):
        await broadcaster(stage, inbox, tmp_path, f"m{number}")
    await stage.until(lambda: [len(inbox.messages) for inbox in inboxes] == [20, 20])
    await stage.world.sleep(30)
    await reset(stage)
    await stage.world.sleep(60)
    assert sorted(len(inbox.messages) for inbox in inboxes) == [20, 40]
    (rewound,) = [inbox for inbox in inboxes if len(inbox.messages) == 40]
    assert rewound.bodies[20:] == rewound.bodies[:20]


@pytest.mark.parametrize(
    ("profile", "is_reset"), [(Profile.V42, False), (Profile.V49, False), (Profile.V53, True)]
)
@played(reset_mode=ResetMode.CLASSIC)
async def test_old_clustering_offsets_let_a_classic_reset_through(
    stage: SimStage, tmp_path: Path, profile: Profile, is_reset: bool
) -> None:
    """The consumers get a reset notification (220); before 5.2 each restores its old offset from its file."""
    await stage.create_topic(queues=2)
    await stage.fill(10)
    clustering = Inbox(stage.world)
    async with stage.push_consumer(clustering):
        await stage.until(lambda: stage.stored() == {0: 10, 1: 10})
    inboxes = [Inbox(stage.world), Inbox(stage.world)]
    for number, inbox in enumerate(inboxes):
        await broadcaster(stage, inbox, tmp_path, f"m{number}")
    await stage.until(lambda: [len(inbox.messages) for inbox in inboxes] == [20, 20])
    await stage.world.sleep(12)
    await reset(stage)
    await stage.world.sleep(40)
    assert len(stage.events.at(Point.RESUMED)) == 2
    assert [len(inbox.messages) for inbox in inboxes] == ([40, 40] if is_reset else [20, 20])
    assert stage.stored() == {0: 10, 1: 10}


@pytest.mark.parametrize("profile", list(Profile))
@played()
async def test_a_killed_consumer_continues_from_its_file(
    stage: SimStage, tmp_path: Path, profile: Profile
) -> None:
    await stage.create_topic(queues=2)
    await stage.fill(10)
    first = Inbox(stage.world)
    consumer = await broadcaster(stage, first, tmp_path, "m")
    await stage.until(lambda: len(first.messages) == 20)
    await stage.world.sleep(12)
    saved = (tmp_path / "m" / consumer.client_id / "G" / "offsets.json").read_bytes()
    await stage.fill(5, first=10)
    await stage.until(lambda: len(first.messages) == 30)
    await consumer.shutdown()
    # The state after a kill before the next write.
    (tmp_path / "m" / consumer.client_id / "G" / "offsets.json").write_bytes(saved)
    again = Inbox(stage.world)
    await broadcaster(stage, again, tmp_path, "m")
    await stage.until(lambda: len(again.messages) == 10)
    await stage.world.sleep(5)
    assert sorted(set(again.bodies)) == [b"10", b"11", b"12", b"13", b"14"]
    assert len(again.messages) == 10


@pytest.mark.parametrize("profile", list(Profile))
@played()
async def test_a_consumer_that_owns_no_queue_does_not_write_its_file(
    stage: SimStage, tmp_path: Path, profile: Profile
) -> None:
    """Without a name server for longer than the first two writes, the offsets stay until it returns."""
    await stage.create_topic(queues=2)
    await stage.fill(10)
    first = Inbox(stage.world)
    consumer = await broadcaster(stage, first, tmp_path, "m")
    await stage.until(lambda: len(first.messages) == 20)
    await consumer.shutdown()
    await stage.stop_namesrv()
    again = Inbox(stage.world)
    await broadcaster(stage, again, tmp_path, "m")
    await stage.world.sleep(22)
    await stage.start_namesrv()
    await stage.world.sleep(45)
    await stage.fill(1, first=10)
    await stage.until(lambda: len(again.messages) == 2)
    assert set(again.bodies) == {b"10"}


async def test_damaged_offsets_without_a_backup_are_an_error_not_a_new_beginning(tmp_path: Path) -> None:
    world = World()
    instance = ClientInstance(
        world.runtime(), make_config("127.0.0.1:1", profile=Profile.V53, instance_name="i")
    )
    store = LocalFileOffsetStore(instance, "G", tmp_path)
    path = tmp_path / "127.0.0.1@i" / "G" / "offsets.json"
    store.update(Q0, 5, increase_only=False)
    await store.persist_all([Q0])
    store.update(Q0, 6, increase_only=False)
    await store.persist_all([Q0])
    path.write_text("{")
    await LocalFileOffsetStore(instance, "G", tmp_path).load()
    path.with_name("offsets.json.bak").write_text("{")
    with pytest.raises(ClientError, match="and its backup are damaged"):
        await LocalFileOffsetStore(instance, "G", tmp_path).load()
    await store.persist(Q0)
    await store.persist_all([Q0])
    assert path.read_text() == "{"


@pytest.mark.parametrize(
    ("where", "first"),
    [(ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET, 3), (ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, 0)],
)
@played()
async def test_a_new_consumer_starts_where_its_option_says(
    stage: SimStage, tmp_path: Path, where: ConsumeFromWhere, first: int
) -> None:
    await stage.create_topic(queues=1)
    await stage.fill(3)
    inbox = Inbox(stage.world)
    await stage.consume(
        inbox,
        message_model=MessageModel.BROADCASTING,
        offset_root=tmp_path,
        consume_from_where=where,
    )
    await stage.world.sleep(2)
    await stage.fill(1, first=3)
    await stage.until(lambda: sorted(inbox.bodies) == [b"%d" % number for number in range(first, 4)])
