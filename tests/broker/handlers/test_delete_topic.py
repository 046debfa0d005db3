"""DELETE_TOPIC_IN_BROKER (215) and the groups' offsets in the topic (docs/spec/broker.md B.18)."""

from __future__ import annotations

import errno
import shutil

import pytest

from rewindmq.broker.broker import Broker
from rewindmq.broker.store.tables.consumer_offset import ConsumerOffsetTable
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.errors import ResponseError
from rewindmq.protocol.header.admin import DeleteSubscriptionGroupRequestHeader, DeleteTopicRequestHeader
from rewindmq.protocol.message.record import decode_records
from rewindmq.protocol.names import retry_topic
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from tests.support.answers import body_of
from tests.support.failing_disk import FailingDisk
from tests.support.fixtures import simulated
from tests.support.peer import Peer
from tests.support.stage import SimStage

V4 = (Profile.V42, Profile.V49)
REMOVALS = (RequestCode.DELETE_TOPIC_IN_BROKER, RequestCode.DELETE_SUBSCRIPTIONGROUP)


async def remove(peer: Peer, code: int = RequestCode.DELETE_TOPIC_IN_BROKER) -> None:
    """Delete topic T, or group G with its offsets."""
    if code == RequestCode.DELETE_TOPIC_IN_BROKER:
        answer = await peer.ask(code, DeleteTopicRequestHeader("T"))
    else:
        answer = await peer.ask(code, DeleteSubscriptionGroupRequestHeader("G", True))
    answer.require_success()


def stored(broker: Broker, topic: str = "T", group: str = "G") -> int:
    return broker.context.offsets.table.query(group, topic, 0)


async def consumed_8_of_8(stage: SimStage) -> Peer:
    return await stage.group_at(8, messages=8)


@simulated(profile=Profile.V53)
async def test_from_5_0_on_the_group_gets_all_messages_of_the_new_topic(stage: SimStage) -> None:
    """apache/rocketmq 2743 and 4774: the group got 0 of 8 where the offsets stayed."""
    peer = await consumed_8_of_8(stage)
    await remove(peer)
    await peer.create_topic(write=1, read=1)
    await peer.fill(8)
    assert await peer.stored_offset() == 0
    assert len(decode_records(body_of(await peer.pull(await peer.stored_offset())))) == 8
    assert stage.broker.context.offsets.table.groups_of("T") == []


@pytest.mark.parametrize("profile", V4)
@simulated()
async def test_up_to_4_9_the_group_skips_as_many_messages_as_it_had_consumed(
    stage: SimStage, profile: Profile
) -> None:
    peer = await consumed_8_of_8(stage)
    await remove(peer)
    await peer.create_topic(write=1, read=1)
    await peer.fill(8)
    assert await peer.stored_offset() == 8


@simulated(profile=Profile.V53)
async def test_offsets_in_other_topics_and_in_the_retry_topic_stay(stage: SimStage) -> None:
    peer = await consumed_8_of_8(stage)
    await peer.heartbeat("H")
    await peer.commit_all(3, 1, group="H")
    for topic in ("T2", retry_topic("G")):
        await peer.create_topic(topic)
        await peer.commit_all(5, 1, topic)
    await remove(peer)
    assert [stored(stage.broker, group=group) for group in ("G", "H")] == [-1, -1]
    assert [stored(stage.broker, topic) for topic in ("T2", retry_topic("G"))] == [5, 5]


@simulated(profile=Profile.V53)
async def test_the_marks_of_a_server_side_reset_go_with_the_topic(stage: SimStage) -> None:
    peer = await consumed_8_of_8(stage)
    await peer.targets(0, reset_mode=ResetMode.SERVER)
    assert len(stage.broker.context.offsets.marks) == 1
    await remove(peer)
    assert not stage.broker.context.offsets.marks
    await peer.create_topic(write=1, read=1)
    await peer.fill(2)
    assert (await peer.status(1))[0] == ResponseCode.SUCCESS


@pytest.mark.parametrize("code", REMOVALS)
@pytest.mark.parametrize("restarts", [False, True])
@simulated(profile=Profile.V53)
async def test_a_fenced_reset_recognises_commits_from_before_the_removal(
    stage: SimStage, code: int, restarts: bool
) -> None:
    """Epoch 1 of the new topic or group would be that of deliveries before its removal."""
    peer = await consumed_8_of_8(stage)
    await peer.targets(0, reset_mode=ResetMode.FENCED)
    assert await peer.record() == (0, 1)
    assert (await peer.commit(6, epoch=1)).code == ResponseCode.SUCCESS
    await remove(peer, code)
    if restarts:
        await stage.restart_broker()
    await peer.create_topic(write=1, read=1)
    await peer.heartbeat()
    await peer.fill(8)
    await peer.targets(0, reset_mode=ResetMode.FENCED)
    assert await peer.record() == (0, 2)
    assert (await peer.commit(6, epoch=1)).code == ResponseCode.OFFSET_FENCED
    assert await peer.record() == (0, 2)


@pytest.mark.parametrize("code", REMOVALS)
@simulated(profile=Profile.V53)
async def test_a_kill_right_after_the_response_does_not_restore_the_offsets(
    stage: SimStage, code: int
) -> None:
    peer = await consumed_8_of_8(stage)
    # The offsets are on disk, and are not written again for 5 s.
    await stage.at(15.1)
    await remove(peer, code)
    shutil.copytree(stage.root / "broker-a", stage.root / "killed")
    killed = await stage.start_broker(store_path_root_dir=str(stage.root / "killed"))
    assert stored(killed) == -1


@pytest.mark.parametrize("code", REMOVALS)
@simulated(brokers=0, profile=Profile.V53)
async def test_a_removal_that_the_disk_refuses_fails_and_is_written_later(stage: SimStage, code: int) -> None:
    disk = FailingDisk(stage.runtime.clock.now_ms)
    broker = await stage.start_broker(disk=disk.disk, profile=Profile.V53)
    peer = await consumed_8_of_8(stage)
    await stage.at(15.1)
    disk.fail(errno.EIO, "replace")
    with pytest.raises(ResponseError):
        await remove(peer, code)
    assert on_disk(broker, disk) == 8
    disk.mend()
    await stage.at(30.0)
    assert on_disk(broker, disk) == -1


def on_disk(broker: Broker, disk: FailingDisk) -> int:
    path = broker.context.config.root / "config" / "consumerOffset.json"
    table = ConsumerOffsetTable(path, disk.disk)
    table.load()
    return table.query("G", "T", 0)


@simulated(profile=Profile.V53)
async def test_a_running_consumer_stores_its_offset_again_only_in_a_new_topic(stage: SimStage) -> None:
    """As at 5.5.0: a commit names no topic's life. docs/retention.md says to stop the consumers first."""
    peer = await consumed_8_of_8(stage)
    await remove(peer)
    late = await peer.commit(8)
    assert (late.code, late.remark) == (ResponseCode.TOPIC_NOT_EXIST, "Topic T not exist!")
    assert (await peer.pull(8, commit=8)).code == ResponseCode.TOPIC_NOT_EXIST
    assert stored(stage.broker) == -1
    await peer.create_topic(write=1, read=1)
    assert (await peer.commit(8)).code == ResponseCode.SUCCESS
    assert stored(stage.broker) == 8


@simulated(profile=Profile.V53)
async def test_deleting_again_removes_offsets_without_a_topic(stage: SimStage) -> None:
    """Such offsets exist after a kill before the response, and in a store of 4.x."""
    stage.broker.context.offsets.table.commit("G", "T", 0, 8)
    await remove(stage.peer())
    assert stored(stage.broker) == -1


@pytest.mark.parametrize(
    ("topic", "remark"),
    [
        (" ", "The specified topic is blank."),
        ("TBW102", "The topic[TBW102] is conflict with system topic."),
        # The cluster's own topic.
        ("DefaultCluster", "The topic[DefaultCluster] is conflict with system topic."),
    ],
)
@pytest.mark.parametrize(("profile", "code"), [(Profile.V49, 1), (Profile.V53, 29)])
@simulated()
async def test_blank_names_and_system_topics_are_refused(
    stage: SimStage, profile: Profile, code: int, topic: str, remark: str
) -> None:
    answer = await stage.peer().ask(RequestCode.DELETE_TOPIC_IN_BROKER, DeleteTopicRequestHeader(topic))
    assert (answer.code, answer.remark) == (code, remark)
