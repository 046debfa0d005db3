"""222 under the classic mode: D05, D06, D08, D10, D11, D12, D14, D15, D20, D21."""

from __future__ import annotations

from typing import Any

import pytest

from rewindmq.protocol.body.heartbeat import MessageModel
from rewindmq.protocol.body.offset_table import ResetOffsetBody, ResetOffsetBodyForC
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import SerializeType
from rewindmq.protocol.header.reset import ResetOffsetRequestHeader
from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.protocol.version import LanguageCode
from rewindmq.race.sim.world import EPOCH_MS
from tests.support.answers import remark_of
from tests.support.fixtures import RunScenario, simulated
from tests.support.stage import ServerStage, SimStage

PROFILES = (Profile.V42, Profile.V49, Profile.V53)
TO_THE_END = -1


@pytest.mark.parametrize("profile", PROFILES)
@simulated(reset_mode=ResetMode.CLASSIC)
async def test_D01_each_consumer_gets_the_table_and_the_stored_offsets_stay(
    stage: SimStage, profile: Profile
) -> None:
    peer = await stage.group_at(100, queues=2)
    other = stage.peer("c2")
    await other.heartbeat()
    assert await stage.peer("admin").targets(EPOCH_MS) == {0: 0, 1: 0}
    await stage.at(3.0)
    for member in (peer, other):
        notice = member.received[-1][1]
        assert notice.code == RequestCode.RESET_CONSUMER_CLIENT_OFFSET
        header = notice.decode_header(ResetOffsetRequestHeader)
        assert (header.topic, header.group, header.timestamp) == ("T", "G", EPOCH_MS)
        assert sorted(decode_body(notice, ResetOffsetBody).offset_table.values()) == [0, 0]
    assert await peer.stored_offset() == 100


@pytest.mark.scenario("D05", "v42", "v49", "v53c")
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    ("stored", "timestamp", "force", "expected"),
    [(0, 0, False, 0), (50, 0, False, 0), (30, TO_THE_END, False, 30), (30, TO_THE_END, True, 100)],
)
@simulated(reset_mode=ResetMode.CLASSIC)
async def test_D05_without_force_only_strictly_smaller_targets_count(
    stage: SimStage, profile: Profile, stored: int, timestamp: int, force: bool, expected: int
) -> None:
    peer = await stage.group_at(stored)
    assert await peer.targets(timestamp, force=force) == {0: expected}
    await stage.at(3.0)
    # The consumers run the whole procedure even if no offset changes.
    assert peer.count(220) == 1


@pytest.mark.parametrize(
    ("profile", "timestamp", "target"),
    [(Profile.V42, "now", 99), (Profile.V49, -1, 100), (Profile.V53, -1, 100), (Profile.V53, "now", 100)],
)
@simulated(reset_mode=ResetMode.CLASSIC)
async def test_D06_targets_of_now(
    stage: SimStage, profile: Profile, timestamp: int | str, target: int
) -> None:
    peer = await stage.group_at(10)
    await stage.at(3.0)
    asked = timestamp if isinstance(timestamp, int) else EPOCH_MS + 3_000
    assert await peer.targets(asked) == {0: target}


@pytest.mark.scenario("D08", "v42", "v49", "v53c")
@pytest.mark.parametrize(("profile", "code"), [(Profile.V42, 1), (Profile.V49, 1), (Profile.V53, 17)])
@pytest.mark.parametrize("topic", ["Nope", "../../x"])
@simulated(reset_mode=ResetMode.CLASSIC)
async def test_D08_topic_unknown_at_the_broker(
    stage: SimStage, profile: Profile, code: int, topic: str
) -> None:
    response = await stage.peer().reset(0, topic)
    assert response.code == code
    assert response.remark == f"[reset-offset] reset offset failed, no topic in this broker. topic={topic}"


@pytest.mark.parametrize("profile", PROFILES)
@simulated(reset_mode=ResetMode.CLASSIC)
async def test_D10_offline_with_offsets(stage: SimStage, profile: Profile) -> None:
    peer = await stage.group_at(100)
    await peer.client.close()
    await stage.at(3.0)
    admin = stage.peer("admin")
    response = await admin.reset(12345)
    assert response.code == 206
    assert (
        response.remark == "Consumer not online, so can not reset offset, Group: G Topic: T Timestamp: 12345"
    )
    assert await admin.stored_offset() == 100


@pytest.mark.parametrize("profile", PROFILES)
@simulated(reset_mode=ResetMode.CLASSIC)
async def test_D11_offline_without_offsets(stage: SimStage, profile: Profile) -> None:
    peer = stage.peer()
    await peer.create_topic()
    response = await peer.reset(0)
    assert (response.code, response.remark) == (1, "THe consumer group <G> not exist")


@pytest.mark.parametrize("profile", PROFILES)
@simulated(reset_mode=ResetMode.CLASSIC)
async def test_D12_an_old_consumer_stops_the_notifications_after_earlier_consumers(
    stage: SimStage, profile: Profile
) -> None:
    first = await stage.group_at(100)
    old, last = stage.peer("c2", version=27), stage.peer("c3")
    await old.heartbeat()
    await last.heartbeat()
    response = await stage.peer("admin").reset(0)
    assert (response.code, response.remark) == (
        1,
        "the client does not support this feature. version=V3_0_6",
    )
    await stage.at(3.0)
    assert [member.count(220) for member in (first, old, last)] == [1, 0, 0]


@simulated()
async def test_D12_the_first_version_that_supports_220_gets_it(stage: SimStage) -> None:
    first = await stage.group_at(100)
    young = stage.peer("c2", version=28)
    await young.heartbeat()
    (await first.reset(0)).require_success()
    await stage.at(3.0)
    assert young.count(220) == 1


@simulated()
async def test_D12_the_version_that_pyrocketmq_always_states_is_no_age(stage: SimStage) -> None:
    first = await stage.group_at(100)
    python = stage.peer("c2", version=1, language=LanguageCode.PYTHON)
    await python.heartbeat()
    (await first.reset(0)).require_success()
    await stage.at(3.0)
    assert [member.count(220) for member in (first, python)] == [1, 1]


@pytest.mark.parametrize("profile", PROFILES)
@simulated(reset_mode=ResetMode.CLASSIC)
async def test_D14_language_of_the_administrator_decides_the_form_of_220(
    stage: SimStage, profile: Profile
) -> None:
    peer = await stage.group_at(100)
    admin = stage.peer("admin", language=LanguageCode.CPP)
    assert await admin.targets(0) == {0: 0}
    await stage.at(3.0)
    (line,) = decode_body(peer.received[-1][1], ResetOffsetBodyForC).offset_table
    assert (line.topic, line.broker_name, line.queue_id, line.offset) == ("T", "broker-a", 0, 0)
    assert await peer.stored_offset() == 100


@pytest.mark.scenario("D15", "v49")
@simulated(profile=Profile.V49)
async def test_D15_a_broadcast_group_has_no_offsets_here(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic()
    await peer.heartbeat(model=MessageModel.BROADCASTING)
    response = await peer.reset(0)
    assert (response.code, response.remark) == (1, "THe consumer group <G> not exist")
    await stage.at(1.0)
    assert peer.count(220) == 0


@pytest.mark.scenario("D20", "v42", "v49", "v53c")
@pytest.mark.parametrize("profile", PROFILES)
@simulated(reset_mode=ResetMode.CLASSIC)
async def test_D20_one_queue_without_offset_fails_the_whole_reset(stage: SimStage, profile: Profile) -> None:
    peer = await stage.group_at(1, queues=4, messages=1, write=8, read=4)
    response = await peer.reset(0)
    assert (response.code, response.remark) == (1, "THe consumer group <G> not exist")
    assert peer.count(220) == 0


@pytest.mark.scenario("D21", "v42", "v49", "v53c")
@pytest.mark.parametrize("profile", PROFILES)
@simulated(reset_mode=ResetMode.CLASSIC)
async def test_D21_queues_beyond_the_write_queues_are_left_alone(stage: SimStage, profile: Profile) -> None:
    peer = await stage.group_at(1, queues=8, messages=1, write=4, read=8)
    assert await peer.targets(0) == {0: 0, 1: 0, 2: 0, 3: 0}
    assert [await peer.stored_offset(queue_id=queue_id) for queue_id in range(4, 8)] == [1] * 4


@pytest.mark.parametrize("fields", [{"queue_id": 0}, {"queue_id": 3, "offset": 10}])
@simulated()
async def test_a_reset_of_one_queue_is_refused_instead_of_rewinding_all(
    stage: SimStage, fields: dict[str, Any]
) -> None:
    peer = await stage.group_at(100)
    response = await peer.reset(0, **fields)
    assert response.code == 1
    assert "resets whole topics" in remark_of(response)
    assert peer.count(220) == 0


async def test_consumers_get_220_in_their_own_serialization_type(stage: ServerStage) -> None:
    await stage.start_broker()
    peers = [
        stage.peer(f"c{serialize_type}", serialize_type=serialize_type) for serialize_type in SerializeType
    ]
    await peers[0].create_topic(write=1, read=1)
    await peers[0].commit(5)
    for peer in peers:
        await peer.heartbeat()
    assert await stage.peer("admin").targets(TO_THE_END) == {0: 0}
    for peer, serialize_type in zip(peers, SerializeType, strict=True):
        notice = await peer.hear(220)
        assert notice.serialize_type == serialize_type
        assert list(decode_body(notice, ResetOffsetBody).offset_table.values()) == [0]


def test_points_of_a_reset(simulate: RunScenario) -> None:
    seen: list[tuple[Point, dict[str, Any]]] = []

    async def scenario(stage: SimStage) -> None:
        stage.probe = lambda point, details: seen.append((point, details))
        await stage.start_broker()
        peer = await stage.group_at(100)
        await peer.reset(0)

    simulate(scenario, brokers=0)
    points = [point for point, _ in seen]
    assert points[0] is Point.COMMIT_RECEIVED
    assert points[-3:] == [Point.RESET_RECEIVED, Point.RESET_TARGETS_COMPUTED, Point.CLIENT_NOTIFIED]
