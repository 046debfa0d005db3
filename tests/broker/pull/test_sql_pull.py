"""Pulls with SQL92: refusals (1, 23, 27), reads, scans, suspended pulls, CHECK_CLIENT_CONFIG (46)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rewindmq.protocol.body.heartbeat import (
    EXPRESSION_SQL92,
    CheckClientRequestBody,
    ConsumerData,
    HeartbeatData,
    SubscriptionData,
)
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.message.record import decode_records
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.subscription import build_subscription_data
from tests.support.answers import body_of
from tests.support.fixtures import RunScenario, simulated
from tests.support.peer import Peer
from tests.support.stage import SimStage

PROFILES = (Profile.V42, Profile.V49, Profile.V53)
ON: dict[str, Any] = {"enable_property_filter": True}
REFUSAL = "The broker does not support consumer to filter message by SQL92"


async def priced(stage: SimStage, count: int = 10) -> Any:
    """A peer, and messages of prices 0, 1, 2, ... in queue 0."""
    peer = stage.peer()
    await peer.create_topic()
    for price in range(count):
        await peer.send(properties={"price": str(price), "TAGS": "even" if price % 2 == 0 else "odd"})
    return peer


def prices(response: RemotingCommand) -> list[int]:
    return [
        int(message.properties["price"]) for message in decode_records(body_of(response.require_success()))
    ]


async def subscribe(
    peer: Peer, expression: str, *, kind: str = EXPRESSION_SQL92, class_filter: bool = False
) -> None:
    subscription = build_subscription_data("T", expression, kind, 1)
    subscription.class_filter_mode = class_filter
    body = HeartbeatData(peer.client_id, [], [ConsumerData("G", subscription_data_set=[subscription])])
    (await peer.ask(RequestCode.HEART_BEAT, body=body)).require_success()


@pytest.mark.parametrize("profile", PROFILES)
@simulated(**ON)
async def test_the_stored_properties_decide_whichever_way_the_filter_came(
    stage: SimStage, profile: Profile
) -> None:
    peer = await priced(stage)
    sql: dict[str, Any] = {
        "subscription": "price > 3 AND TAGS = 'odd'",
        "expression_type": EXPRESSION_SQL92,
    }
    answer = await peer.pull(0, **sql)
    assert prices(answer) == [5, 7, 9]
    assert answer.ext["nextBeginOffset"] == 10
    assert prices(await peer.pull(6, count=1, **sql)) == [7]
    await subscribe(peer, "price BETWEEN 2 AND 4")
    assert prices(await peer.pull(0, subscription=None)) == [2, 3, 4]
    # No message matches: the broker has checked all, so the next pull follows at once.
    none = {"subscription": "price > 99", "expression_type": EXPRESSION_SQL92}
    assert await peer.status(2, hold_ms=9_000, **none) == (20, "NO_MATCHED_MESSAGE", 10)


@simulated(**ON)
async def test_one_pull_scans_800_entries_at_most(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic()
    await peer.fill(900)
    none = {"subscription": "price > 99", "expression_type": EXPRESSION_SQL92}
    assert await peer.status(0, **none) == (20, "NO_MATCHED_MESSAGE", 800)
    assert await peer.status(800, **none) == (20, "NO_MATCHED_MESSAGE", 900)


@simulated(**ON)
async def test_a_long_filter_ends_a_pull_early_and_the_next_one_goes_on_there(stage: SimStage) -> None:
    peer = await priced(stage, 100)
    # Some 1,500 parts; the last part decides.
    expression = " OR ".join([*(f"price = {number}" for number in range(1_000, 1_500)), "price = 99"])
    wanted = {"subscription": expression, "expression_type": EXPRESSION_SQL92}
    offset, pulls = 0, 0
    while not (found := await peer.pull(offset, **wanted)).body:
        assert found.code == ResponseCode.PULL_RETRY_IMMEDIATELY
        assert offset < found.ext["nextBeginOffset"] <= offset + 40
        offset, pulls = found.ext["nextBeginOffset"], pulls + 1
    assert prices(found) == [99]
    assert pulls >= 2


@simulated(**ON)
async def test_only_a_matching_message_wakes_a_suspended_pull(stage: SimStage) -> None:
    peer = await priced(stage)
    held = asyncio.ensure_future(
        peer.pull(10, hold_ms=30_000, subscription="price > 100", expression_type=EXPRESSION_SQL92)
    )
    await stage.at(1.0)
    await peer.send(properties={"price": "50"})
    await stage.at(2.0)
    assert not held.done()
    await peer.send(properties={"price": "500"})
    assert prices(await held) == [500]
    assert stage.runtime.clock.monotonic() == pytest.approx(2.0, abs=0.01)


@pytest.mark.parametrize("profile", PROFILES)
@simulated()
async def test_without_enablePropertyFilter_sql_is_refused_in_RocketMQs_words(
    stage: SimStage, profile: Profile
) -> None:
    peer = await priced(stage)
    answer = await peer.pull(0, subscription="price > 3", expression_type=EXPRESSION_SQL92)
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, REFUSAL)
    await subscribe(peer, "price > 3")
    answer = await peer.pull(0, subscription=None)
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, REFUSAL)
    body = CheckClientRequestBody("c1", "G", build_subscription_data("T", "price > 3", EXPRESSION_SQL92))
    answer = await peer.ask(RequestCode.CHECK_CLIENT_CONFIG, body=body)
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, REFUSAL)


@simulated(**ON)
async def test_a_bad_expression_is_27_from_heartbeats_and_23_from_pulls_and_checks(stage: SimStage) -> None:
    peer = await priced(stage)
    await subscribe(peer, "price >")
    answer = await peer.pull(0, subscription=None)
    assert answer.code == ResponseCode.FILTER_DATA_NOT_EXIST
    assert answer.remark == ("The broker's consumer filter data is not exist!Your expression may be wrong!")
    answer = await peer.pull(0, subscription="price >", expression_type=EXPRESSION_SQL92)
    assert answer.code == ResponseCode.SUBSCRIPTION_PARSE_FAILED
    answer = await peer.pull(0, subscription="", expression_type=EXPRESSION_SQL92)
    assert answer.code == ResponseCode.SUBSCRIPTION_PARSE_FAILED
    body = CheckClientRequestBody("c1", "G", SubscriptionData("T", "price >", expression_type="SQL92"))
    answer = await peer.ask(RequestCode.CHECK_CLIENT_CONFIG, body=body)
    assert answer.code == ResponseCode.SUBSCRIPTION_PARSE_FAILED
    assert answer.remark == (
        "Invalid MessageSelector. : character 8: found the end where a property, a value or ( is expected"
    )


@simulated(**ON)
async def test_46_takes_tags_and_good_expressions_and_refuses_unknown_types(stage: SimStage) -> None:
    peer = stage.peer()
    for kind, expression, code in (
        ("TAG", "||", 0),
        (EXPRESSION_SQL92, "price > 3", 0),
        ("MAGIC", "price > 3", ResponseCode.SYSTEM_ERROR),
    ):
        body = CheckClientRequestBody("c1", "G", SubscriptionData("T", expression, expression_type=kind))
        assert (await peer.ask(RequestCode.CHECK_CLIENT_CONFIG, body=body)).code == code


def test_only_5_x_knows_CONTAINS(simulate: RunScenario) -> None:
    async def scenario(stage: SimStage) -> None:
        peer = stage.peer()
        await peer.create_topic()
        await peer.send(properties={"place": "north-eu", "price": "1"})
        sql: dict[str, Any] = {"subscription": "place CONTAINS 'eu'", "expression_type": EXPRESSION_SQL92}
        is_new = stage.broker.context.profile.filters_texts
        assert (await peer.pull(0, **sql)).code == (0 if is_new else ResponseCode.PULL_RETRY_IMMEDIATELY)

    simulate(scenario, profile=Profile.V53, **ON)
    simulate(scenario, profile=Profile.V49, **ON)


@simulated(**ON)
async def test_class_filters_are_refused(stage: SimStage) -> None:
    peer = await priced(stage)
    await subscribe(peer, "com.example.Filter", kind="TAG", class_filter=True)
    answer = await peer.pull(0, subscription=None)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert "filter server" in str(answer.remark)


@simulated(store={"physical_memory_bytes": 60_000}, **ON)
async def test_the_batch_limits_count_what_passes(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic()
    for price in range(40):
        await peer.send(properties={"price": str(price)}, body=bytes(1_000))
    odd: dict[str, Any] = {"subscription": "price > 19", "expression_type": EXPRESSION_SQL92}
    # 40 % of 100 000 bytes of memory: older messages are served eight at a time.
    answer = await peer.pull(0, **odd)
    assert prices(answer) == list(range(20, 40))
    cold: dict[str, Any] = {"subscription": "price >= 0", "expression_type": EXPRESSION_SQL92}
    assert prices(await peer.pull(0, **cold)) == list(range(8))
