"""222 under mode server (docs/spec/reset.md D.9), with its holes: D15, D20 to D29, E21, E23, E25."""

from __future__ import annotations

import asyncio
import shutil
from typing import Any

import pytest

from rewindmq.broker.store.tables import consumer_offset
from rewindmq.protocol.body.heartbeat import MessageModel
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import SerializeType
from rewindmq.protocol.header.admin import DeleteSubscriptionGroupRequestHeader
from rewindmq.protocol.header.reset import InvokeBrokerToResetOffsetResponseHeader
from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.protocol.version import MQVersion
from rewindmq.race.sim.world import EPOCH_MS
from tests.support.fixtures import RunScenario, simulated
from tests.support.peer import Peer
from tests.support.stage import SimStage

TO_THE_END = -1
SERVER: dict[str, Any] = {"profile": Profile.V53, "reset_mode": ResetMode.SERVER}
SWALLOWED = (0, "Offset has been previously reset")


async def commit(peer: Peer, offset: int) -> tuple[int, str | None]:
    response = await peer.commit(offset)
    return response.code, response.remark


@pytest.mark.scenario("D15", "v53s")
@simulated(**SERVER)
async def test_D15_a_broadcast_group_is_reset_all_the_same(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic(write=1, read=1)
    await peer.heartbeat(model=MessageModel.BROADCASTING)
    assert await peer.targets(0) == {0: 0}


@pytest.mark.scenario("D20", "v53s")
@pytest.mark.scenario("D21", "v53s")
@pytest.mark.parametrize(("write", "read"), [(8, 4), (4, 8)])
@simulated(**SERVER)
async def test_D20_D21_the_queues_are_the_read_queues(stage: SimStage, write: int, read: int) -> None:
    peer = stage.peer()
    await peer.create_topic(write=write, read=read)
    await peer.heartbeat()
    await peer.fill(1)
    assert await peer.targets(0) == dict.fromkeys(range(read), 0)


@pytest.mark.scenario("D23", "v53s")
@simulated(**SERVER)
async def test_D23_an_unknown_group_is_26_and_not_created(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic()
    response = await peer.reset(0)
    assert (response.code, response.remark) == (26, "Group G does not exist")
    assert stage.broker.context.tables.groups.get("G") is None


@pytest.mark.scenario("D08", "v53s")
@pytest.mark.parametrize("profile", [Profile.V42, Profile.V49, Profile.V53])
@simulated(reset_mode=ResetMode.SERVER)
async def test_D08_an_unknown_topic_is_17(stage: SimStage, profile: Profile) -> None:
    peer = await stage.group_at(100)
    response = await peer.reset(0, "Nope")
    assert (response.code, response.remark) == (17, "Topic Nope does not exist")


@pytest.mark.scenario("D24", "v53s")
@simulated(**SERVER)
async def test_D24_an_offset_may_lie_one_past_the_end(
    stage: SimStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer = await stage.group_at(50)
    # Nothing is ever deleted here.
    monkeypatch.setattr(stage.broker.context.store, "min_offset", lambda topic, queue_id: 10)
    for offset in (10, 100, 101):
        assert await peer.targets(0, queue_id=0, offset=offset) == {0: offset}
    for offset in (9, 102, -2):
        response = await peer.reset(0, queue_id=0, offset=offset)
        assert response.code == 1
        assert response.remark == f"Target offset {offset} not in consume queue range [10-100]"
    assert await peer.stored_offset() == 101


@simulated(**SERVER)
async def test_one_queue_by_time_leaves_the_others(stage: SimStage) -> None:
    peer = await stage.group_at(50, queues=3)
    assert await peer.targets(0, queue_id=1) == {1: 0}
    assert await peer.targets(TO_THE_END, queue_id=2, offset=-1) == {2: 100}
    assert [await peer.stored_offset(queue_id=queue_id) for queue_id in range(3)] == [50, 0, 100]


@simulated(**SERVER)
async def test_force_is_not_looked_at_and_any_negative_time_is_the_end(stage: SimStage) -> None:
    peer = await stage.group_at(50)
    assert await peer.targets(-7, force=False) == {0: 100}
    assert await peer.stored_offset() == 100


def test_a_reset_for_which_there_is_no_room_changes_nothing(
    simulate: RunScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumer_offset, "MAX_OFFSETS", 3)

    async def scenario(stage: SimStage) -> None:
        peer = await stage.group_at(50, queues=1, write=4, read=4)
        response = await peer.reset(0)
        assert (response.code, response.remark) == (1, "there are 1 consumer offsets already")
        assert await peer.stored_offset() == 50
        assert await commit(peer, 51) == (0, None)

    simulate(scenario, **SERVER)


@simulated(**SERVER)
async def test_a_topic_without_read_queues(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic(write=1, read=0)
    await peer.heartbeat()
    response = await peer.reset(0)
    assert (response.code, response.remark) == (1, "No queues to reset.")


@pytest.mark.scenario("D26", "v53s")
@simulated(**SERVER)
async def test_D26_until_a_pull_consumes_the_mark_14_returns_it_and_15_is_ignored(stage: SimStage) -> None:
    peer = await stage.group_at(100)
    assert await peer.targets(EPOCH_MS) == {0: 0}
    assert peer.count(220) == 0
    assert await peer.stored_offset() == 0
    assert await commit(peer, 500) == SWALLOWED
    assert await commit(stage.peer("admin"), 30) == SWALLOWED
    assert await peer.stored_offset() == 0
    assert stage.broker.context.offsets.table.query("G", "T", 0) == 0


@pytest.mark.scenario("D27", "v53s")
@simulated(**SERVER)
async def test_D27_the_next_pull_is_sent_to_the_target_and_then_all_is_as_before(stage: SimStage) -> None:
    peer = await stage.group_at(100)
    await peer.targets(EPOCH_MS)
    assert await peer.status(100) == (21, "OFFSET_RESET", 0)
    code, _, next_offset = await peer.status(0)
    assert (code, next_offset) == (0, 32)
    assert await commit(peer, 32) == (0, None)
    assert await peer.stored_offset() == 32
    assert stage.broker.context.offsets.fenced_commits.listed(None, None).total == 0


@pytest.mark.scenario("D28", "v53s")
@pytest.mark.parametrize("version", [MQVersion.V5_2_0, MQVersion.V5_3_3])
def test_D28_a_suspended_pull_of_5_2_and_later_returns_the_reset_at_once(
    simulate: RunScenario, version: int
) -> None:
    async def scenario(stage: SimStage) -> None:
        await stage.group_at(100, queues=2)
        peer = stage.peer("c2", version=version)
        await stage.at(7.0)
        held = [
            asyncio.ensure_future(peer.status(100, queue_id=queue_id, hold_ms=15_000)) for queue_id in (0, 1)
        ]
        other = asyncio.ensure_future(peer.status(100, group="Other", hold_ms=15_000))
        await stage.at(13.0)
        await stage.peer("admin").targets(EPOCH_MS)
        assert await asyncio.gather(*held) == [(21, "OFFSET_RESET", 0)] * 2
        assert stage.runtime.clock.monotonic() == pytest.approx(13.0, abs=0.01)
        assert not stage.broker.context.offsets.marks
        assert peer.count(RequestCode.RESET_CONSUMER_CLIENT_OFFSET) == 0
        assert peer.count(RequestCode.NOTIFY_QUEUE_RESET) == 0
        assert not other.done()
        assert (await other)[0] == ResponseCode.PULL_NOT_FOUND

    simulate(scenario, **SERVER)


@pytest.mark.parametrize("version", [MQVersion.V4_9_8, MQVersion.V5_2_0 - 1])
def test_the_suspended_pull_of_an_older_client_leaves_the_mark_until_its_time_is_over(
    simulate: RunScenario, version: int
) -> None:
    """Such a client commits the target 10 s later, and old offsets before: the mark keeps them away."""

    async def scenario(stage: SimStage) -> None:
        await stage.group_at(100)
        peer = stage.peer("c2", version=version)
        await stage.at(7.0)
        # Suspended until the check at 25, which is the first with an age of 15 s.
        held = asyncio.ensure_future(peer.status(100, hold_ms=15_000))
        await stage.at(13.0)
        await stage.peer("admin").targets(EPOCH_MS)
        await stage.at(24.9)
        assert not held.done()
        assert await commit(peer, 100) == SWALLOWED
        assert await held == (21, "OFFSET_RESET", 0)
        assert stage.runtime.clock.monotonic() == pytest.approx(25.0, abs=0.01)

    simulate(scenario, **SERVER)


@simulated(**SERVER)
async def test_the_suspended_pull_of_a_reset_to_the_end_is_answered_with_the_end(stage: SimStage) -> None:
    await stage.group_at(100)
    peer = stage.peer("c2", version=MQVersion.V5_3_3)
    held = asyncio.ensure_future(peer.status(100, hold_ms=15_000))
    await stage.at(3.0)
    await stage.peer("admin").targets(TO_THE_END)
    assert await held == (21, "OFFSET_RESET", 100)
    assert stage.runtime.clock.monotonic() == pytest.approx(3.0, abs=0.01)
    assert await commit(peer, 100) == (0, None)


@pytest.mark.scenario("D29", "v53s")
@simulated(**SERVER)
async def test_D29_an_offline_group_starts_at_the_target_and_is_sent_there_once_more(stage: SimStage) -> None:
    peer = await stage.group_at(100)
    await peer.client.close()
    await stage.at(3.0)
    assert await stage.peer("admin").targets(EPOCH_MS) == {0: 0}
    later = stage.peer("c2")
    await later.heartbeat()
    assert await later.stored_offset() == 0
    assert await later.status(0) == (21, "OFFSET_RESET", 0)
    assert (await later.status(0))[0] == 0


@simulated(**SERVER)
async def test_E21_S1_the_pull_that_collects_the_mark_commits_the_old_offset_again(stage: SimStage) -> None:
    peer = await stage.group_at(100)
    stored = []
    await peer.targets(EPOCH_MS)
    stored.append(await peer.stored_offset())
    assert await peer.status(100, commit=100) == (21, "OFFSET_RESET", 0)
    stored.append(await peer.stored_offset())
    await peer.commit(0)
    stored.append(await peer.stored_offset())
    assert stored == [0, 100, 0]


@simulated(**SERVER)
async def test_E23_S3_a_restart_forgets_the_mark_and_takes_the_old_offset_back(stage: SimStage) -> None:
    peer = await stage.group_at(100)
    await peer.targets(EPOCH_MS)
    await stage.at(15.1)
    shutil.copytree(stage.root / "broker-a", stage.root / "crashed")
    await stage.start_broker(store_path_root_dir=str(stage.root / "crashed"), **SERVER)
    running = stage.peer()
    assert await running.stored_offset() == 0
    assert await commit(running, 100) == (0, None)
    assert await running.stored_offset() == 100


@simulated(**SERVER)
async def test_E25_commits_of_a_consumer_that_does_not_pull_have_no_effect(stage: SimStage) -> None:
    peer = await stage.group_at(100)
    await peer.targets(EPOCH_MS)
    for second in range(5, 65, 5):
        await stage.at(float(second))
        assert await commit(peer, 100 + second) == SWALLOWED
        assert await peer.stored_offset() == 0


@simulated(**SERVER)
async def test_S4_the_first_pull_takes_the_mark_and_the_owner_goes_on(stage: SimStage) -> None:
    owner = await stage.group_at(90)
    await owner.targets(EPOCH_MS)
    assert await stage.peer("passer-by").status(0) == (21, "OFFSET_RESET", 0)
    assert (await owner.status(90, commit=90))[0] == 0
    assert await owner.stored_offset() == 90


@simulated(**SERVER)
async def test_other_groups_and_queues_do_not_meet_the_mark(stage: SimStage) -> None:
    peer = await stage.group_at(50, queues=2)
    await peer.targets(0, queue_id=1, offset=3)
    assert (await peer.status(50))[0] == 0
    assert (await peer.status(50, queue_id=1, group="Other"))[0] == 0
    assert await peer.status(50, queue_id=1) == (21, "OFFSET_RESET", 3)


@simulated(profile=Profile.V49, reset_mode=ResetMode.SERVER)
async def test_a_21_of_a_reset_leaves_no_offset_moved_event(stage: SimStage) -> None:
    peer = await stage.group_at(50)
    await peer.targets(0)
    assert (await peer.status(50))[0] == 21
    assert stage.broker.context.store.max_offset("OFFSET_MOVED_EVENT", 0) == 0


@pytest.mark.parametrize(
    ("own", "asked", "used"),
    [
        (ResetMode.CLASSIC, None, "classic"),
        (ResetMode.SERVER, None, "server"),
        (ResetMode.CLASSIC, "server", "server"),
        (ResetMode.FENCED, "classic", "classic"),
        (ResetMode.SERVER, "fenced", "fenced"),
    ],
)
def test_the_request_may_name_another_mode_and_the_answer_says_which_it_was(
    simulate: RunScenario, own: ResetMode, asked: str | None, used: str
) -> None:
    async def scenario(stage: SimStage) -> None:
        peer = await stage.group_at(50)
        response = await peer.reset(0, reset_mode=asked and ResetMode(asked))
        header = response.require_success().decode_header(InvokeBrokerToResetOffsetResponseHeader)
        assert header.reset_mode == used
        await stage.at(3.0)
        assert peer.count(220) == (used == "classic")

    simulate(scenario, reset_mode=own)


@pytest.mark.parametrize(
    ("profile", "keys", "used"),
    [
        (Profile.V42, {}, "classic"),
        (Profile.V49, {}, "classic"),
        # Since 5.2.0: docs/spec/reset.md D.10.
        (Profile.V53, {}, "server"),
        (Profile.V53, {"use_server_side_reset_offset": False}, "classic"),
        (Profile.V53, {"use_server_side_reset_offset": False, "reset_mode": ResetMode.FENCED}, "fenced"),
    ],
)
def test_the_mode_is_that_of_the_release_unless_a_key_names_another(
    simulate: RunScenario, profile: Profile, keys: dict[str, Any], used: str
) -> None:
    async def scenario(stage: SimStage) -> None:
        peer = await stage.group_at(50)
        response = (await peer.reset(0)).require_success()
        assert response.decode_header(InvokeBrokerToResetOffsetResponseHeader).reset_mode == used
        shown = (await peer.ask(RequestCode.GET_BROKER_CONFIG)).body
        assert isinstance(shown, bytes)
        assert shown.decode().split().count(f"resetMode={used}") == 1

    simulate(scenario, profile=profile, **keys)


@pytest.mark.parametrize("serialize_type", [None, SerializeType.JSON, SerializeType.ROCKETMQ])
def test_a_mode_that_there_is_not_is_refused_by_name(
    simulate: RunScenario, serialize_type: SerializeType | None
) -> None:
    async def scenario(stage: SimStage) -> None:
        await stage.group_at(50)
        response = await stage.peer("admin", serialize_type=serialize_type).ask(
            RequestCode.INVOKE_BROKER_TO_RESET_OFFSET,
            topic="T",
            group="G",
            timestamp="0",
            isForce="true",
            resetMode="fence",
        )
        assert response.code == 1
        assert response.remark == "resetMode 'fence' is none of classic, server, fenced; nothing is reset"

    simulate(scenario)


@simulated()
async def test_a_classic_reset_takes_the_marks_of_a_server_reset_away(stage: SimStage) -> None:
    peer = await stage.group_at(50)
    await peer.targets(0, reset_mode=ResetMode.SERVER)
    await peer.targets(TO_THE_END, reset_mode=ResetMode.CLASSIC)
    assert await commit(peer, 100) == (0, None)
    assert await peer.stored_offset() == 100


@pytest.mark.parametrize("removes", [True, False])
@simulated(**SERVER)
async def test_marks_go_with_the_offsets_of_a_group_that_is_deleted(stage: SimStage, removes: bool) -> None:
    peer = await stage.group_at(50)
    await peer.heartbeat("Other")
    await peer.targets(7)
    await peer.targets(7, group="Other")
    header = DeleteSubscriptionGroupRequestHeader("G", removes)
    (await peer.ask(RequestCode.DELETE_SUBSCRIPTIONGROUP, header)).require_success()
    marks = stage.broker.context.offsets.marks
    assert (marks.find("G", "T", 0) is None) == removes
    assert marks.find("Other", "T", 0) is not None


def test_points_of_a_server_reset(simulate: RunScenario) -> None:
    seen: list[tuple[Point, dict[str, Any]]] = []

    async def scenario(stage: SimStage) -> None:
        stage.probe = lambda point, details: seen.append((point, details))
        await stage.start_broker(**SERVER)
        peer = await stage.group_at(100)
        seen.clear()
        await peer.targets(EPOCH_MS)
        await peer.stored_offset()
        await peer.commit(100)
        await peer.status(100)

    simulate(scenario, brokers=0)
    assert [point for point, _ in seen] == [
        Point.RESET_RECEIVED,
        Point.RESET_TARGETS_COMPUTED,
        Point.OFFSET_RESET,
        Point.OFFSET_QUERIED,
        Point.COMMIT_FENCED,
        Point.MARK_COLLECTED,
        Point.PULL_ANSWERED,
    ]
    queue = {"group": "G", "topic": "T", "queue_id": 0}
    client = seen[3][1]["client"]
    assert client.startswith("10.0.3.")
    assert seen[0][1].items() >= {"mode": "server", "broker": "broker-a", "timestamp": EPOCH_MS}.items()
    assert seen[2][1] == {**queue, "offset": 0, "stored": 100, "epoch": 0, "mode": "server"}
    assert seen[3][1] == {**queue, "offset": 0, "epoch": 0, "client": client}
    assert seen[4][1].items() >= {"offset": 100, "stored": 0, "carrier": 15, "epoch": None}.items()
    assert seen[5][1] == {**queue, "offset": 0, "client": client}
    assert seen[6][1] == {**queue, "offset": 100, "client": client, "code": 21, "next": 0}
