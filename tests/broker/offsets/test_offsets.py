"""Offsets: B12 to B19, B21, and refusals of UPDATE_CONSUMER_OFFSET (15)."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from rewindmq.broker.offsets import committer
from rewindmq.broker.store.tables import consumer_offset
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.errors import ConnectionLostError
from rewindmq.protocol.header.offset import GetMaxOffsetRequestHeader, GetMinOffsetRequestHeader
from rewindmq.protocol.profile import Profile
from rewindmq.race.sim.world import EPOCH_MS
from tests.support.answers import present, remark_of
from tests.support.fixtures import RunScenario, simulated
from tests.support.stage import SimStage

PROFILES = (Profile.V42, Profile.V49, Profile.V53)
FIRST_BOOT = "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first"


@pytest.mark.scenario("B12", "v42", "v49", "v53")
@pytest.mark.parametrize("profile", PROFILES)
@simulated()
async def test_B12_a_crash_loses_offsets_after_the_last_flush(stage: SimStage, profile: Profile) -> None:
    peer = stage.peer()
    await peer.create_topic()
    await peer.heartbeat()
    await peer.commit(100)
    await stage.at(10.1)
    await peer.commit(120)
    await stage.at(14.9)
    # The state of the disk after a kill at this moment.
    shutil.copytree(stage.root / "broker-a", stage.root / "crashed")
    await stage.start_broker(store_path_root_dir=str(stage.root / "crashed"), profile=profile)
    assert await stage.peer().stored_offset() == 100


@pytest.mark.parametrize("profile", PROFILES)
@simulated()
async def test_a_negative_offset_on_a_pull_is_not_stored(stage: SimStage, profile: Profile) -> None:
    peer = stage.peer()
    await peer.create_topic()
    await peer.heartbeat()
    await peer.commit(7)
    await peer.pull(0, commit=-5)
    assert await peer.stored_offset() == 7


def test_one_connection_adds_its_share_of_offsets_and_others_are_served(
    simulate: RunScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committer, "MAX_NEW_OFFSETS_PER_CONNECTION", 2)

    async def scenario(stage: SimStage) -> None:
        greedy, other = stage.peer("greedy"), stage.peer("other")
        await greedy.create_topic()
        for queue_id in (0, 1):
            (await greedy.commit(5, queue_id=queue_id)).require_success()
        refused = await greedy.commit(5, queue_id=2)
        assert (refused.code, refused.remark) == (
            ResponseCode.SYSTEM_ERROR,
            "this connection has 2 new consumer offsets already, of 2",
        )
        # Known offsets may still change, and others may add theirs.
        (await greedy.commit(6, queue_id=1)).require_success()
        (await other.commit(5, queue_id=2)).require_success()
        (await greedy.commit(6, queue_id=2)).require_success()
        new_offsets = stage.broker.context.offsets.committer.new_offsets
        assert new_offsets.used == 3
        await greedy.client.close()
        await stage.at(1.0)
        assert new_offsets.used == 1

    simulate(scenario)


def test_one_offset_too_many_is_refused_by_15_and_by_pulls(
    simulate: RunScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumer_offset, "MAX_OFFSETS", 2)

    async def scenario(stage: SimStage) -> None:
        peer = stage.peer()
        await peer.create_topic()
        for queue_id in (0, 1):
            (await peer.commit(5, queue_id=queue_id)).require_success()
        refused = await peer.commit(5, queue_id=2)
        assert (refused.code, refused.remark) == (1, "there are 2 consumer offsets already")
        refused = await peer.pull(0, queue_id=3, commit=5, hold_ms=15_000)
        assert (refused.code, refused.remark) == (1, "there are 2 consumer offsets already")
        assert stage.broker.context.pulls.long_polling.suspended_count == 0
        (await peer.commit(6, queue_id=1)).require_success()
        assert stage.broker.context.offsets.table.offsets_of("G", "T") == {0: 5, 1: 6}
        await stage.broker.close()
        await stage.start_broker()
        assert (await stage.peer().commit(5, queue_id=2)).code == 1

    simulate(scenario)


@simulated()
async def test_B12_the_table_is_flushed_at_10_seconds_and_then_every_5(stage: SimStage) -> None:
    peer, file = stage.peer(), stage.root / "broker-a/config/consumerOffset.json"
    await peer.commit(1)
    await stage.at(9.99)
    assert not file.exists()
    for second, offset in ((10.01, 1), (15.01, 2), (20.01, 3)):
        await stage.at(second)
        assert f'"T@G":{{0:{offset}\n' in file.read_text()
        await peer.commit(offset + 1)


@pytest.mark.scenario("B13", "v42", "v49", "v53")
@pytest.mark.parametrize("profile", PROFILES)
@simulated()
async def test_B13_a_clean_stop_keeps_all_offsets(stage: SimStage, profile: Profile) -> None:
    peer = stage.peer()
    await peer.create_topic("Kept", write=3, read=5)
    await peer.heartbeat("Members")
    await peer.fill(4, "Kept")
    await peer.heartbeat()
    await peer.commit(120, "Kept")
    await stage.broker.close()
    broker = await stage.start_broker(profile=profile)
    assert await stage.peer().stored_offset("Kept") == 120
    topic = present(broker.context.tables.topics.find("Kept"))
    assert (topic.write_queue_nums, topic.read_queue_nums) == (3, 5)
    assert broker.context.tables.groups.get("Members") is not None
    assert broker.context.store.max_offset("Kept", 0) == 4
    assert broker.context.tables.topics.find("%RETRY%Members") is not None


@pytest.mark.scenario("B14", "v42", "v49", "v53")
@pytest.mark.parametrize(("profile", "code"), [(Profile.V42, 0), (Profile.V49, 0), (Profile.V53, 26)])
@simulated()
async def test_B14_commit_of_an_unknown_group(stage: SimStage, profile: Profile, code: int) -> None:
    peer = stage.peer()
    await peer.create_topic()
    response = await peer.commit(7, group="G9")
    assert response.code == code
    if code:
        assert response.remark == "Group G9 not exist!"
        await peer.heartbeat("G9")
        unknown = await peer.commit(7, "Nope", group="G9")
        assert (unknown.code, unknown.remark) == (17, "Topic Nope not exist!")
    else:
        assert await peer.stored_offset(group="G9") == 7


@pytest.mark.scenario("B15", "v42", "v49", "v53")
@pytest.mark.parametrize("profile", PROFILES)
@simulated()
async def test_B15_new_group_and_a_queue_with_recent_messages(stage: SimStage, profile: Profile) -> None:
    peer = stage.peer()
    await peer.fill(10)
    assert await peer.stored_offset() == 0


@pytest.mark.scenario("B16", "v42", "v49", "v53")
@pytest.mark.parametrize(("profile", "code"), [(Profile.V42, 0), (Profile.V49, 0), (Profile.V53, 22)])
@simulated()
async def test_B16_new_group_and_a_queue_never_written(stage: SimStage, profile: Profile, code: int) -> None:
    response = await stage.peer().stored()
    assert (response.code, response.remark) == (code, FIRST_BOOT if code else None)


@pytest.mark.scenario("B17", "v42", "v49", "v53")
@pytest.mark.parametrize("profile", PROFILES)
@simulated(store={"physical_memory_bytes": 100_000})
async def test_B17_new_group_and_the_first_message_on_disk(stage: SimStage, profile: Profile) -> None:
    peer = stage.peer()
    await peer.fill(50, body=bytes(1_000))
    response = await peer.stored()
    assert (response.code, response.remark) == (ResponseCode.QUERY_NOT_FOUND, FIRST_BOOT)


@simulated()
async def test_a_disk_that_fails_14_is_no_answer_that_4_x_takes_for_no_offset(
    stage: SimStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer = stage.peer()
    await peer.create_topic()
    await peer.fill(1)

    def fails(*_: Any) -> bool:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(stage.broker.context.store, "is_cold", fails)
        with pytest.raises(ConnectionLostError):
            await peer.stored()
    assert await peer.stored_offset() == 0


@pytest.mark.scenario("B18", "v53")
@pytest.mark.parametrize(("profile", "code"), [(Profile.V49, 0), (Profile.V53, 22)])
@simulated()
async def test_B18_set_zero_if_not_found(stage: SimStage, profile: Profile, code: int) -> None:
    peer = stage.peer()
    await peer.fill(1)
    response = await peer.stored(set_zero_if_not_found=False)
    assert response.code == code
    if code:
        assert response.remark == "Not found, do not set to zero, maybe this group boot first"
    assert (await peer.stored(set_zero_if_not_found=True)).code == ResponseCode.SUCCESS


ASKED = (50, 100, 200, 240, 250, 260, 400, 500)


@pytest.mark.scenario("B19", "v42", "v49", "v53")
@pytest.mark.parametrize(
    ("profile", "boundary", "found"),
    [
        (Profile.V42, None, (0, 0, 2, 3, 3, 4, 5, 5)),
        (Profile.V49, None, (0, 0, 2, 3, 3, 4, 5, 5)),
        (Profile.V49, "UPPER", (0, 0, 2, 3, 3, 4, 5, 5)),
        (Profile.V53, None, (0, 0, 1, 4, 4, 4, 5, 6)),
        (Profile.V53, "LOWER", (0, 0, 1, 4, 4, 4, 5, 6)),
        (Profile.V53, "upper", (0, 0, 3, 3, 3, 3, 5, 5)),
    ],
)
@simulated()
async def test_B19_search_offset_by_time(
    stage: SimStage, profile: Profile, boundary: str | None, found: tuple[int, ...]
) -> None:
    peer = stage.peer()
    await stage.at_ms(99)
    await peer.create_topic()
    for stored_at in (100, 200, 200, 200, 300, 400):
        await stage.at_ms(stored_at)
        await peer.send()
    assert tuple([await peer.search(EPOCH_MS + asked, boundary) for asked in ASKED]) == found


@pytest.mark.scenario("B21", "v42", "v49", "v53")
@pytest.mark.parametrize("profile", PROFILES)
@simulated()
async def test_B21_an_empty_queue_returns_zero(stage: SimStage, profile: Profile) -> None:
    peer = stage.peer()
    await peer.create_topic()
    for topic in ("T", "Nope", "../../x"):
        for timestamp in (-1, 0, EPOCH_MS):
            assert await peer.search(timestamp, topic=topic) == 0
        assert await peer.number(RequestCode.GET_MAX_OFFSET, GetMaxOffsetRequestHeader(topic, 0)) == 0
        assert await peer.number(RequestCode.GET_MIN_OFFSET, GetMinOffsetRequestHeader(topic, 0)) == 0
    assert not (stage.root / "broker-a/consumequeue/T").exists()


@pytest.mark.parametrize("profile", PROFILES)
def test_B8_a_commit_that_goes_back_is_stored_and_logged(
    simulate: RunScenario, profile: Profile, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(stage: SimStage) -> None:
        peer = stage.peer()
        await peer.create_topic()
        await peer.heartbeat()
        await peer.commit(100)
        await peer.commit(40)
        assert await peer.stored_offset() == 40

    simulate(scenario, profile=profile)
    (line,) = [line for line in caplog.messages if line.startswith("[NOTIFYME]")]
    assert line.startswith("[NOTIFYME]update consumer offset less than store.")


@pytest.mark.parametrize(
    ("topic", "group", "queue_id", "offset"),
    [
        ("../../x", "G", 0, 1),
        ("T", "../../x", 0, 1),
        ("T", "a@b", 0, 1),
        ("", "G", 0, 1),
        ("T", "G", -1, 1),
        ("T", "G", 0, -1),
    ],
)
@simulated()
async def test_commits_that_are_refused_store_nothing(
    stage: SimStage, topic: str, group: str, queue_id: int, offset: int
) -> None:
    response = await stage.peer().commit(offset, topic, queue_id, group)
    assert response.code == ResponseCode.SYSTEM_ERROR
    assert response.remark
    await stage.at(10.1)
    assert not (stage.root / "broker-a/config/consumerOffset.json").exists()


@simulated()
async def test_missing_fields_of_an_offset_request(stage: SimStage) -> None:
    peer = stage.peer()
    for code in (14, 15, 29, 30, 31, 33, 38, 202, 203, 208, 222, 17, 11):
        response = await peer.ask(code)
        assert response.code == ResponseCode.SYSTEM_ERROR
        assert "missing required field" in remark_of(response)
    unknown = await peer.ask(9_999)
    assert unknown.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
