"""Pulls: B04 to B08, B10, B29, checks, filters, and messages in OFFSET_MOVED_EVENT."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable
from typing import Any, TypeVar

import msgspec
import pytest

from rewindmq.protocol.body.heartbeat import MessageModel
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.pull import PullMessageRequestHeader, PullMessageResponseHeader
from rewindmq.protocol.message.record import decode_records
from rewindmq.protocol.message.sysflag import PullSysFlag
from rewindmq.protocol.profile import Profile
from tests.support.answers import body_of, remark_of
from tests.support.fixtures import simulated
from tests.support.stage import SimStage

T = TypeVar("T")

PROFILES = (Profile.V42, Profile.V49, Profile.V53)


async def hundred(stage: SimStage) -> Any:
    """A peer, and a queue with max 100, min 0."""
    peer = stage.peer()
    await peer.create_topic()
    await peer.fill(100)
    return peer


async def timed(stage: SimStage, pull: Awaitable[T]) -> tuple[float, T]:
    """Return the time and the content of a pull's response."""
    answer = await pull
    return stage.runtime.clock.monotonic(), answer


@pytest.mark.scenario("B04", "v42", "v49", "v53")
@pytest.mark.parametrize("profile", PROFILES)
@simulated()
async def test_B04_a_pull_at_the_end_is_suspended_until_the_first_loop_tick_with_its_age(
    stage: SimStage, profile: Profile
) -> None:
    peer = await hundred(stage)
    await stage.at(1.0)
    at, answer = await timed(stage, peer.status(100, hold_ms=15_000))
    # Age 15 is reached at 16; the loop looks every 5 s.
    assert at == pytest.approx(20.0, abs=0.01)
    assert answer == (ResponseCode.PULL_NOT_FOUND, "OFFSET_OVERFLOW_ONE", 100)


@simulated()
async def test_B04_a_pull_returns_at_the_first_tick_after_the_requested_time(stage: SimStage) -> None:
    peer = await hundred(stage)
    await stage.at(5.0)
    at, answer = await timed(stage, peer.status(100, hold_ms=15_000))
    assert (at, answer[0]) == (20.0, ResponseCode.PULL_NOT_FOUND)


@simulated()
async def test_B04_without_the_suspend_flag_a_pull_returns_at_once(stage: SimStage) -> None:
    peer = await hundred(stage)
    at, answer = await timed(stage, peer.status(100))
    assert at < 0.1
    assert answer == (ResponseCode.PULL_NOT_FOUND, "OFFSET_OVERFLOW_ONE", 100)


@simulated(long_polling_enable=False)
async def test_B04_without_long_polling_a_pull_is_suspended_for_one_second(stage: SimStage) -> None:
    peer = await hundred(stage)
    await stage.at(3.9)
    at, _ = await timed(stage, peer.status(100, hold_ms=15_000))
    assert at == pytest.approx(5.0, abs=0.01)


@pytest.mark.scenario("B05", "v42", "v49", "v53")
@pytest.mark.parametrize("profile", PROFILES)
@simulated()
async def test_B05_an_arrival_wakes_a_suspended_pull(stage: SimStage, profile: Profile) -> None:
    peer = await hundred(stage)
    held = asyncio.ensure_future(timed(stage, peer.pull(100, hold_ms=15_000)))
    await stage.at(2.0)
    await stage.peer().send(body=b"new")
    at, response = await held
    assert at == pytest.approx(2.0, abs=0.01)
    assert response.code == ResponseCode.SUCCESS
    assert response.remark == "FOUND"
    assert [message.body for message in decode_records(body_of(response))] == [b"new"]
    assert response.decode_header(PullMessageResponseHeader).next_begin_offset == 101


@simulated()
async def test_B05_one_response_has_all_messages_of_one_network_read(stage: SimStage) -> None:
    peer, producer = await hundred(stage), stage.peer("p1")
    await producer.send(queue_id=1)
    held = asyncio.ensure_future(peer.pull(100, hold_ms=15_000))
    await stage.at(2.0)
    await asyncio.gather(*(producer.send(body=b"%d" % number) for number in range(3)))
    response = await held
    assert [message.body for message in decode_records(body_of(response))] == [b"0", b"1", b"2"]


@simulated()
async def test_B05_an_arrival_with_another_tag_does_not_wake_a_suspended_pull(stage: SimStage) -> None:
    peer, producer = await hundred(stage), stage.peer("p1")
    held = asyncio.ensure_future(timed(stage, peer.status(100, hold_ms=15_000, subscription="TagB")))
    await stage.at(2.0)
    await producer.send(properties={"TAGS": "TagA"})
    await stage.at(3.0)
    assert not held.done()
    # The loop looks at no tag: it runs the pull again, which finds nothing that matches.
    assert await held == (5.0, (ResponseCode.PULL_RETRY_IMMEDIATELY, "NO_MATCHED_MESSAGE", 101))
    held = asyncio.ensure_future(timed(stage, peer.status(101, hold_ms=15_000, subscription="TagB")))
    await stage.at(6.0)
    await producer.send(properties={"TAGS": "TagB"})
    at, answer = await held
    assert at == pytest.approx(6.0, abs=0.01)
    assert answer == (ResponseCode.SUCCESS, "FOUND", 102)


@pytest.mark.scenario("B06", "v42", "v49", "v53")
@pytest.mark.parametrize("profile", PROFILES)
@simulated()
async def test_B06_B07_offsets_out_of_range_are_moved_at_once(stage: SimStage, profile: Profile) -> None:
    peer = await hundred(stage)
    moved = ResponseCode.PULL_OFFSET_MOVED
    assert await peer.status(101, hold_ms=15_000) == (moved, "OFFSET_OVERFLOW_BADLY", 100)
    assert await peer.status(-1, hold_ms=15_000) == (moved, "OFFSET_TOO_SMALL", 0)
    assert stage.runtime.clock.monotonic() < 0.1


@pytest.mark.scenario("B08", "v42", "v49", "v53")
@pytest.mark.parametrize("profile", PROFILES)
@simulated()
async def test_B08_a_queue_that_was_never_written(stage: SimStage, profile: Profile) -> None:
    peer = stage.peer()
    await peer.create_topic()
    at, answer = await timed(stage, peer.status(0, hold_ms=4_000))
    assert at == 5.0
    assert answer == (ResponseCode.PULL_NOT_FOUND, "NO_MESSAGE_IN_QUEUE", 0)
    moved = (ResponseCode.PULL_OFFSET_MOVED, "NO_MESSAGE_IN_QUEUE", 0)
    assert await peer.status(5, hold_ms=4_000) == moved


@pytest.mark.scenario("B10", "v42", "v49", "v53")
@pytest.mark.parametrize("profile", PROFILES)
@simulated()
async def test_B10_a_suspended_pull_commits_on_arrival_and_not_when_woken(
    stage: SimStage, profile: Profile
) -> None:
    peer, other = await hundred(stage), stage.peer("c2")
    await peer.heartbeat()
    held = asyncio.ensure_future(peer.pull(100, hold_ms=15_000, commit=77))
    await stage.at(0.5)
    assert await other.stored_offset() == 77
    await other.commit(88)
    assert (await held).code == ResponseCode.PULL_NOT_FOUND
    assert await other.stored_offset() == 88


@simulated()
async def test_B07_a_commit_rides_on_a_pull_that_is_moved(stage: SimStage) -> None:
    peer = await hundred(stage)
    assert (await peer.pull(500, commit=42)).code == ResponseCode.PULL_OFFSET_MOVED
    assert await peer.stored_offset() == 42


@pytest.mark.scenario("B29", "v42", "v49", "v53")
@pytest.mark.parametrize("profile", PROFILES)
@simulated(store={"physical_memory_bytes": 100_000})
async def test_B29_cold_data_is_served_eight_messages_at_a_time(stage: SimStage, profile: Profile) -> None:
    peer = stage.peer()
    await peer.create_topic()
    # 40 % of 100 000 bytes of memory; each record takes some 1100.
    await peer.fill(100, body=bytes(1_000))
    assert (await peer.status(0))[2] == 8
    assert (await peer.status(90))[2] == 100


@pytest.mark.parametrize(("profile", "events"), [(Profile.V42, 2), (Profile.V49, 2), (Profile.V53, 0)])
@simulated()
async def test_each_21_leaves_an_offset_moved_event(stage: SimStage, profile: Profile, events: int) -> None:
    peer = await hundred(stage)
    await peer.pull(101)
    await peer.pull(-5, group="G2")
    response = await peer.pull(0, "OFFSET_MOVED_EVENT")
    messages = decode_records(body_of(response) or b"")
    assert len(messages) == events
    if events:
        event = msgspec.json.decode(messages[1].body)
        assert event == {
            "consumerGroup": "G2",
            "messageQueue": {"brokerName": "broker-a", "queueId": 0, "topic": "T"},
            "offsetNew": 0,
            "offsetRequest": -5,
        }
        assert (messages[1].tags, messages[1].keys) == ("G2", "T")


@simulated()
async def test_all_four_fields_come_with_every_answer(stage: SimStage) -> None:
    peer = await hundred(stage)
    for offset, code in ((0, 0), (100, 19), (101, 21)):
        response = await peer.pull(offset)
        header = response.decode_header(PullMessageResponseHeader)
        assert response.code == code
        assert (header.suggest_which_broker_id, header.min_offset, header.max_offset) == (0, 0, 100)


@pytest.mark.parametrize(("profile", "code"), [(Profile.V42, 1), (Profile.V49, 1), (Profile.V53, 29)])
@simulated()
async def test_queue_out_of_range(stage: SimStage, profile: Profile, code: int) -> None:
    peer = stage.peer()
    await peer.create_topic(write=8, read=4)
    for queue_id in (-1, 4, 2**31 - 1):
        response = await peer.pull(0, queue_id=queue_id)
        assert response.code == code
        assert re.fullmatch(
            rf"queueId\[{queue_id}\] is illegal, topic:\[T\] topicConfig.readQueueNums:\[4\]"
            r" consumer:\[/10\.0\.3\.\d+:\d+\]",
            remark_of(response),
        )


@pytest.mark.parametrize(
    ("profile", "faq"),
    [
        (Profile.V42, "http://rocketmq.apache.org/docs/faq/"),
        (Profile.V49, "http://rocketmq.apache.org/docs/faq/"),
        (Profile.V53, "https://rocketmq.apache.org/docs/bestPractice/06FAQ"),
    ],
)
@simulated()
async def test_unknown_topic_in_the_words_of_the_release(stage: SimStage, profile: Profile, faq: str) -> None:
    response = await stage.peer().pull(0, "Nope")
    assert response.code == ResponseCode.TOPIC_NOT_EXIST
    assert response.remark == (f"topic[Nope] not exist, apply first please! \nSee {faq} for further details.")


@simulated()
async def test_unknown_topic_unknown_group_and_missing_permission(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic("WriteOnly", perm=2)
    unknown = await peer.pull(0, "Nope")
    assert unknown.code == ResponseCode.TOPIC_NOT_EXIST
    assert remark_of(unknown).startswith("topic[Nope] not exist, apply first please!")
    assert (await peer.pull(0, "WriteOnly")).code == ResponseCode.NO_PERMISSION
    bad_group = await peer.pull(0, "WriteOnly", group="../../x")
    assert bad_group.code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST


@pytest.mark.parametrize(
    "wrong",
    [
        {"topic": "Nope"},
        {"queue_id": 4},
        {"subscription": "||"},
        {"expression_type": "SQL92"},
        {"subscription": None},
    ],
    ids=str,
)
@simulated()
async def test_a_refused_pull_creates_no_group(stage: SimStage, wrong: dict[str, Any]) -> None:
    peer = stage.peer()
    await peer.create_topic()
    assert (await peer.pull(0, group="New", **wrong)).code in (1, 17, 23, 24)
    assert stage.broker.context.tables.groups.get("New") is None
    assert (await peer.pull(0, group="New")).code == ResponseCode.PULL_NOT_FOUND
    assert stage.broker.context.tables.groups.get("New") is not None


@simulated(auto_create_subscription_group=False)
async def test_group_unknown_when_groups_are_not_created(stage: SimStage) -> None:
    peer = await hundred(stage)
    response = await peer.pull(0, group="Nobody")
    assert response.code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
    assert remark_of(response).startswith("subscription group [Nobody] does not exist")


@simulated(broker_permission=2)
async def test_broker_that_may_not_be_read(stage: SimStage) -> None:
    response = await stage.peer().pull(0)
    assert response.code == ResponseCode.NO_PERMISSION


@simulated()
async def test_subscription_of_the_heartbeat_decides_without_the_flag(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic()
    for tag in ("TagA", "TagB", "TagA"):
        await peer.send(properties={"TAGS": tag}, body=tag.encode())

    async def pull(sub_version: int = 0) -> Any:
        return await peer.pull(0, subscription=None, sub_version=sub_version)

    assert (await pull()).code == ResponseCode.SUBSCRIPTION_NOT_EXIST
    await peer.heartbeat(topics=["Other"])
    assert (await pull()).code == ResponseCode.SUBSCRIPTION_NOT_EXIST
    await peer.heartbeat(expression="TagA", sub_version=5)
    assert (await pull(6)).code == ResponseCode.SUBSCRIPTION_NOT_LATEST
    found = decode_records((await pull(5)).body)
    assert [message.body for message in found] == [b"TagA", b"TagA"]


@simulated(brokers=0)
async def test_broadcast_of_a_group_that_may_not(stage: SimStage) -> None:
    config = stage.root / "broker-a" / "config" / "subscriptionGroup.json"
    config.parent.mkdir(parents=True)
    config.write_text(
        '{"subscriptionGroupTable":{"G":{"groupName":"G","consumeBroadcastEnable":false},'
        '"Off":{"groupName":"Off","consumeEnable":false}}}'
    )
    await stage.start_broker()
    peer = stage.peer()
    await peer.create_topic()
    await peer.heartbeat(model=MessageModel.BROADCASTING)
    response = await peer.pull(0, subscription=None)
    assert response.code == ResponseCode.NO_PERMISSION
    assert response.remark == "the consumer group[G] can not consume by broadcast way"
    assert (await peer.pull(0, group="Off")).code == ResponseCode.NO_PERMISSION


@pytest.mark.parametrize(
    ("expression", "kind", "code"),
    [
        ("||", "TAG", ResponseCode.SUBSCRIPTION_PARSE_FAILED),
        ("", "SQL92", ResponseCode.SUBSCRIPTION_PARSE_FAILED),
        ("a > 1", "SQL92", ResponseCode.SYSTEM_ERROR),
        ("TagA||TagB", None, ResponseCode.SUCCESS),
        ("", None, ResponseCode.SUCCESS),
    ],
)
@simulated()
async def test_filter_of_the_request(stage: SimStage, expression: str, kind: str | None, code: int) -> None:
    peer = stage.peer()
    await peer.create_topic()
    await peer.send(properties={"TAGS": "TagA"})
    response = await peer.pull(0, subscription=expression, expression_type=kind)
    assert response.code == code
    if kind == "SQL92" and expression:
        assert response.remark == "The broker does not support consumer to filter message by SQL92"


@simulated()
async def test_a_pull_is_forgotten_with_its_connection(stage: SimStage) -> None:
    peer = await hundred(stage)
    held = asyncio.ensure_future(peer.pull(100, hold_ms=15_000))
    await stage.at(1.0)
    await peer.client.close()
    with pytest.raises(Exception, match=r"closed|shuts down|connection"):
        await held
    await stage.at(2.0)
    assert stage.broker.context.pulls.long_polling.suspended_count == 0


@simulated()
async def test_a_oneway_pull_is_not_suspended(stage: SimStage) -> None:
    peer = await hundred(stage)
    header = PullMessageRequestHeader(
        "G", "T", 0, 100, 32, int(PullSysFlag.SUSPEND | PullSysFlag.SUBSCRIPTION), 0, 15_000, 0, "*"
    )
    await peer.client.invoke_oneway(peer.address, RemotingCommand(RequestCode.PULL_MESSAGE, header))
    await peer.stored()
    assert stage.broker.context.pulls.long_polling.suspended_count == 0


@simulated()
async def test_a_suspended_pull_whose_read_fails_gets_an_error_response(
    stage: SimStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer = await hundred(stage)
    first, second = (asyncio.ensure_future(peer.pull(100, hold_ms=15_000, group=name)) for name in "AB")
    await stage.at(1.0)
    puller = stage.broker.context.pulls.puller
    read = puller._get_message
    failures = iter([OSError(24, "Too many open files")])

    def fails_once(*arguments: Any) -> Any:
        for failure in failures:
            raise failure
        return read(*arguments)

    monkeypatch.setattr(puller, "_get_message", fails_once)
    await peer.fill(1)
    response = await first
    assert (response.code, response.remark) == (1, "OSError: [Errno 24] Too many open files")
    assert (await second).code == ResponseCode.SUCCESS


@simulated()
async def test_one_pull_looks_at_no_more_entries_than_a_pull_may_ask_for(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic()
    await peer.fill(1_100)
    for count, scanned in ((32, 800), (900, 900), (2**31 - 1, 1_024)):
        status = await peer.status(0, count=count, subscription="Nothing")
        assert status == (ResponseCode.PULL_RETRY_IMMEDIATELY, "NO_MATCHED_MESSAGE", scanned)


@simulated()
async def test_numbers_at_their_limits_are_harmless(stage: SimStage) -> None:
    peer = await hundred(stage)
    assert (await peer.status(0, count=0))[2] == 1
    assert (await peer.status(0, count=-7))[2] == 1
    assert (await peer.status(0, count=2**31 - 1))[2] == 32
    assert (await peer.status(2**63 - 1))[0] == ResponseCode.PULL_OFFSET_MOVED
    assert (await peer.status(-(2**63)))[0] == ResponseCode.PULL_OFFSET_MOVED
