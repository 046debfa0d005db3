"""CLONE_GROUP_OFFSET (314): one group gets the stored offsets of another (docs/spec/reset.md D.11)."""

from __future__ import annotations

import pytest

from rewindmq.broker.store.tables import consumer_offset
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.reset import CloneGroupOffsetRequestHeader
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from tests.support.answers import remark_of
from tests.support.fixtures import RunScenario, simulated
from tests.support.stage import SimStage


async def clone(
    stage: SimStage,
    source: str = "G",
    destination: str = "H",
    topic: str | None = "T",
    *,
    offline: bool = False,
) -> RemotingCommand:
    header = CloneGroupOffsetRequestHeader(source, destination, topic, offline)
    return await stage.peer("admin").ask(RequestCode.CLONE_GROUP_OFFSET, header)


def stored(stage: SimStage, group: str = "H", topic: str = "T") -> dict[int, int]:
    return stage.broker.context.offsets.table.offsets_of(group, topic)


@pytest.mark.parametrize("profile", [Profile.V42, Profile.V49, Profile.V53])
@simulated()
async def test_the_queues_of_the_destination_are_replaced_as_a_whole(
    stage: SimStage, profile: Profile
) -> None:
    await stage.group_at(40, queues=2)
    for queue_id in (0, 3):
        stage.broker.context.offsets.table.commit("H", "T", queue_id, 9)
    (await clone(stage)).require_success()
    assert stored(stage) == {0: 40, 1: 40}
    # It is a copy: later commits of the source do not change it.
    stage.broker.context.offsets.table.commit("G", "T", 0, 41)
    assert stored(stage)[0] == 40


@simulated()
async def test_it_is_on_disk_with_the_next_flush(stage: SimStage) -> None:
    await stage.group_at(40)
    (await clone(stage)).require_success()
    config = stage.broker.context.config
    await stage.broker.close()
    await stage.start_broker(store_path_root_dir=str(config.root))
    assert stored(stage) == {0: 40}


@pytest.mark.parametrize("topic", [None, "", " "])
@pytest.mark.parametrize("profile", [Profile.V42, Profile.V49, Profile.V53])
@simulated()
async def test_without_a_topic_nothing_is_copied(
    stage: SimStage, profile: Profile, topic: str | None
) -> None:
    """All releases copy the topic of the request, once for each topic of the source."""
    await stage.group_at(40)
    stage.broker.context.offsets.table.commit("H", "T", 0, 9)
    (await clone(stage, topic=topic)).require_success()
    assert stored(stage) == {0: 9}


@simulated(clone_group_offset_of_all_topics=True)
async def test_without_a_topic_all_topics_are_copied_if_the_broker_is_configured_so(stage: SimStage) -> None:
    peer = await stage.group_at(40)
    await peer.create_topic("U", write=1, read=1)
    await peer.heartbeat(topics=("T", "U"))
    await peer.commit(7, "U")
    # Of a topic that is not here any more.
    stage.broker.context.offsets.table.commit("G", "Gone", 0, 1)
    (await clone(stage, topic=None)).require_success()
    assert (stored(stage), stored(stage, topic="U"), stored(stage, topic="Gone")) == ({0: 40}, {0: 7}, {})


@pytest.mark.parametrize(("offline", "copied"), [(False, {}), (True, {0: 7})])
@simulated()
async def test_a_topic_that_the_online_source_does_not_subscribe_is_passed_over(
    stage: SimStage, offline: bool, copied: dict[int, int]
) -> None:
    peer = await stage.group_at(40)
    await peer.create_topic("U", write=1, read=1)
    await peer.commit(7, "U")
    (await clone(stage, topic="U", offline=offline)).require_success()
    assert stored(stage, topic="U") == copied


@simulated()
async def test_a_source_without_offsets_and_an_unknown_topic_succeed_and_change_nothing(
    stage: SimStage,
) -> None:
    await stage.group_at(40)
    stage.broker.context.offsets.table.commit("H", "T", 0, 9)
    (await clone(stage, source="nobody")).require_success()
    (await clone(stage, topic="Nope")).require_success()
    assert stored(stage) == {0: 9}


@pytest.mark.parametrize("destination", ["", "a@b", "x" * 300, "no\nname"])
@simulated()
async def test_a_name_that_no_group_can_have_is_refused(stage: SimStage, destination: str) -> None:
    await stage.group_at(40)
    response = await clone(stage, destination=destination)
    assert response.code == 1
    assert stage.broker.context.offsets.table.groups_of("T") == ["G"]


@simulated(clone_group_offset_of_all_topics=True)
async def test_a_destination_that_was_reset_in_fenced_mode_is_refused_before_anything_is_copied(
    stage: SimStage,
) -> None:
    peer = await stage.group_at(40)
    await peer.create_topic("A", write=1, read=1)
    await peer.heartbeat(topics=("T", "A"))
    await peer.commit(7, "A")
    await peer.commit(5, group="H")
    await peer.heartbeat("H")
    await peer.targets(-1, group="H", reset_mode=ResetMode.FENCED)
    response = await clone(stage, topic=None)
    assert response.code == 1
    assert "resetMode=fenced moves it there; nothing is copied" in remark_of(response)
    assert (stored(stage), stored(stage, topic="A")) == ({0: 100}, {})
    # The other way round, only where it stands is copied, not its epoch.
    (await clone(stage, "H", "K")).require_success()
    assert stored(stage, "K") == {0: 100}
    assert not stage.broker.context.offsets.table.has_epochs("K", "T")


@simulated()
async def test_marks_are_neither_copied_nor_taken_away(stage: SimStage) -> None:
    peer = await stage.group_at(40)
    await peer.heartbeat("H")
    await peer.commit(40, group="H")
    await peer.targets(0, reset_mode=ResetMode.SERVER)
    (await clone(stage)).require_success()
    assert (await peer.status(40, group="H", commit=None))[0] == 0
    assert await peer.status(40) == (21, "OFFSET_RESET", 0)
    await peer.targets(-1, group="H", reset_mode=ResetMode.SERVER)
    (await clone(stage)).require_success()
    assert (await peer.status(40, group="H"))[1:] == ("OFFSET_RESET", 100)


def test_more_offsets_than_there_may_be_are_refused(
    simulate: RunScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumer_offset, "MAX_OFFSETS", 3)

    async def scenario(stage: SimStage) -> None:
        await stage.group_at(40, queues=2)
        response = await clone(stage)
        assert (response.code, response.remark) == (
            1,
            "there are 2 consumer offsets already; nothing is copied",
        )
        assert stored(stage) == {}

    simulate(scenario)


@simulated()
async def test_running_consumers_of_the_destination_overwrite_copied_offsets(stage: SimStage) -> None:
    peer = await stage.group_at(40)
    await peer.heartbeat("H")
    (await clone(stage)).require_success()
    assert peer.count(220) == 0
    await peer.commit(77, group="H")
    assert stored(stage) == {0: 77}
