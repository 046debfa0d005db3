"""The name server's scenarios (docs/spec/scenarios.md, A01 to A11) in every profile they name."""

from __future__ import annotations

import asyncio

import pytest

from rewindmq.namesrv.kv_config import ORDER_TOPIC_CONFIG
from rewindmq.protocol.body.registration import DataVersion
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.header.namesrv import PutKVConfigRequestHeader
from rewindmq.protocol.profile import RELEASES, Profile
from tests.namesrv.connected import connected
from tests.support.fixtures import simulated
from tests.support.peer import Peer
from tests.support.stage import ServerStage, SimStage

every_profile = pytest.mark.parametrize("profile", RELEASES)
with_4_scan = pytest.mark.parametrize("profile", [Profile.V42, Profile.V49])
since_v49 = pytest.mark.parametrize("profile", [Profile.V49, Profile.V53])


async def keep_busy(stage: SimStage, broker: Peer, until: float) -> None:
    """Unrelated requests on the broker's connection, so that it never counts as idle."""
    second = 0.0
    while second + 50.0 < until:
        second += 50.0
        await stage.at(second)
        await broker.cluster_info()
    await stage.at(until)


@pytest.mark.scenario("A01", "v42", "v49")
@with_4_scan
@simulated(brokers=0)
async def test_A01_silent_broker_goes_at_the_first_10s_tick_after_120s(
    stage: SimStage, profile: Profile
) -> None:
    """A broker that is connected but registers no more is routed to until the scan at 125 s."""
    _, broker, client = await connected(stage)
    (await broker.register()).require_success()
    await keep_busy(stage, broker, until=120.0)
    await client.route()
    await stage.at(124.999)
    await client.route()
    await stage.at(125.001)
    assert (await client.find_route()).code == ResponseCode.TOPIC_NOT_EXIST


@pytest.mark.scenario("A02", "v53")
@simulated(brokers=0, profile=Profile.V53)
async def test_A02_silent_broker_goes_at_the_first_5s_tick_after_120s_v53(stage: SimStage) -> None:
    """The same with 5.3.3: gone at the first of its scans, 5 s apart, after 120 s."""
    _, broker, client = await connected(stage)
    (await broker.register()).require_success()
    await keep_busy(stage, broker, until=120.0)
    await client.route()
    # The first tick is at 5 ms, so that this one is at 120.005.
    await stage.at(120.006)
    assert (await client.find_route()).code == ResponseCode.TOPIC_NOT_EXIST


@simulated(brokers=0, profile=Profile.V53)
async def test_A02_broker_that_announced_10s_goes_after_10s_v53(stage: SimStage) -> None:
    _, broker, client = await connected(stage)
    await broker.register(expiry_ms=10_000)
    await stage.at(10.004)
    await client.route()
    await stage.at(10.006)
    assert (await client.find_route()).code == ResponseCode.TOPIC_NOT_EXIST


async def test_A03_closed_connection_takes_topic_broker_and_cluster_along(stage: ServerStage) -> None:
    _, broker, client = await connected(stage)
    await broker.register()
    await client.route()
    await broker.client.close()
    # A client gets no event when the server has seen the end of a connection.
    async with asyncio.timeout(60):
        while (info := await client.cluster_info()).broker_addr_table:
            pass
    assert info.broker_addr_table == {}
    assert info.cluster_addr_table == {}
    assert (await client.find_route()).code == ResponseCode.TOPIC_NOT_EXIST


@pytest.mark.scenario("A03", "v42", "v49", "v53")
@every_profile
@simulated(brokers=0)
async def test_A03_removal_is_immediate_at_7s(stage: SimStage, profile: Profile) -> None:
    """A connection that closes at 7 s takes topic, broker and cluster along at once."""
    _, broker, client = await connected(stage)
    await broker.register()
    await stage.at(7.0)
    await client.route()
    await broker.client.close()
    await stage.at(7.001)
    assert (await client.find_route()).code == ResponseCode.TOPIC_NOT_EXIST
    info = await client.cluster_info()
    assert (info.broker_addr_table, info.cluster_addr_table) == ({}, {})


@pytest.mark.scenario("A05", "v42", "v49", "v53")
@every_profile
@simulated(brokers=0)
async def test_A05_same_version_refreshes_and_leaves_topics_alone(stage: SimStage, profile: Profile) -> None:
    """The same data version again: T, which the body lacks, stays, and it counts as a sign of life."""
    _, broker, client = await connected(stage)
    await broker.register()
    await stage.at(60.0)
    await broker.register(topics=("A", "B"))
    # Without the refresh it would be gone by 130 in every profile.
    await stage.at(130.1)
    await client.route()


@every_profile
@simulated(brokers=0)
async def test_a_new_topic_under_a_known_version_is_taken_by_5x_alone(
    stage: SimStage, profile: Profile
) -> None:
    """Two topics that a broker makes at the same moment are announced in turn, both with the version of the
    second: ``RouteInfoManager#isTopicConfigChanged``, since 5.0.0. What is known already stays as it is."""
    _, broker, client = await connected(stage)
    await broker.register(topics=("T", "U"))
    await broker.register("10.0.0.3:10911", name="broker-b", topics=("B", "TBW102"))
    await broker.register(topics=("A",), version=(1, 2))
    await broker.register(topics=("B", "T"), version=(1, 2), queues=1)
    await client.route("A")
    names = {queue_data.broker_name for queue_data in (await client.route("B")).queue_datas}
    assert names == {"broker-b"} | ({"broker-a"} if profile is Profile.V53 else set())
    (queue_data,) = (await client.route("T")).queue_datas
    assert queue_data.read_queue_nums == 4


@pytest.mark.scenario("A06", "v42", "v49", "v53")
@every_profile
@simulated(brokers=0)
async def test_A06_new_version_adds_topics_and_removes_none(stage: SimStage, profile: Profile) -> None:
    """A newer data version whose body lacks T leaves T routable."""
    _, broker, client = await connected(stage)
    await broker.register()
    await broker.register(topics=("A", "B"), version=(1, 2))
    await client.route("T")
    await client.route("A")


@pytest.mark.scenario("A06b", "v42", "v49", "v53")
@every_profile
@simulated(brokers=0)
async def test_A06b_silent_connection_is_removed_at_120s(stage: SimStage, profile: Profile) -> None:
    """A connection silent for 120 s is closed then, before the scan."""
    _, broker, client = await connected(stage)
    await stage.at(3.0)
    await broker.register()
    await stage.at(122.99)
    await client.route()
    # The scans are at 120 and 125 (v53: 120.005 and 125.005).
    await stage.at(123.01)
    assert (await client.find_route()).code == ResponseCode.TOPIC_NOT_EXIST


@pytest.mark.scenario("A07", "v49", "v53")
@since_v49
@simulated(brokers=0)
async def test_A07_promoted_slave_appears_once(stage: SimStage, profile: Profile) -> None:
    """A slave that registers as id 0 is registered under 0 only."""
    _, broker, client = await connected(stage)
    await broker.register(broker_id=1)
    await broker.register(broker_id=0)
    (found,) = (await client.route()).broker_datas
    assert found.broker_addrs == {0: "10.0.0.2:10911"}


@simulated(brokers=0, profile=Profile.V42)
async def test_A07_promoted_slave_appears_twice_v42(stage: SimStage) -> None:
    _, broker, client = await connected(stage)
    await broker.register(broker_id=1)
    await broker.register(broker_id=0)
    (found,) = (await client.cluster_info()).broker_addr_table.values()
    assert found.broker_addrs == {0: "10.0.0.2:10911", 1: "10.0.0.2:10911"}


@pytest.mark.scenario("A08", "v49", "v53")
@since_v49
@simulated(brokers=0)
async def test_A08_wrong_crc_changes_nothing(stage: SimStage, profile: Profile) -> None:
    """A body with the wrong CRC is refused with 1, and the tables stay as they were."""
    _, broker, client = await connected(stage)
    answer = await broker.register(crc=12_345)
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, "crc32 not match")
    info = await client.cluster_info()
    assert (info.broker_addr_table, info.cluster_addr_table) == ({}, {})
    (await broker.register(crc=0)).require_success()


@simulated(brokers=0, profile=Profile.V42)
async def test_A08_crc_is_not_looked_at_v42(stage: SimStage) -> None:
    _, broker, client = await connected(stage)
    (await broker.register(crc=12_345)).require_success()
    await client.route()


@pytest.mark.scenario("A09", "v42", "v49", "v53")
@pytest.mark.parametrize(
    ("profile", "faq"),
    [
        (Profile.V42, "http://rocketmq.apache.org/docs/faq/"),
        (Profile.V49, "http://rocketmq.apache.org/docs/faq/"),
        (Profile.V53, "https://rocketmq.apache.org/docs/bestPractice/06FAQ"),
    ],
)
@simulated(brokers=0)
async def test_A09_unknown_topic(stage: SimStage, profile: Profile, faq: str) -> None:
    """An unknown topic returns TOPIC_NOT_EXIST (17), with the remark that clients expect."""
    _, _, client = await connected(stage)
    answer = await client.find_route("X")
    assert answer.code == ResponseCode.TOPIC_NOT_EXIST
    assert answer.remark == (
        f"No topic route info in name server for the topic: X\nSee {faq} for further details."
    )


@pytest.mark.scenario("A11", "v42", "v49", "v53")
@every_profile
@pytest.mark.parametrize(("enabled", "expected"), [(False, None), (True, "broker-a:4")])
@simulated(brokers=0)
async def test_A11_order_topic_conf_needs_the_switch(
    stage: SimStage, profile: Profile, enabled: bool, expected: str | None
) -> None:
    """The order configuration of a topic is part of its route only where orderMessageEnable says so."""
    _, broker, client = await connected(stage, order_message_enable=enabled)
    await broker.register()
    put = PutKVConfigRequestHeader(namespace=ORDER_TOPIC_CONFIG, key="T", value="broker-a:4")
    (await client.ask(RequestCode.PUT_KV_CONFIG, put)).require_success()
    assert (await client.route()).order_topic_conf == expected


@simulated(brokers=0, profile=Profile.V53)
async def test_first_registration_with_one_topic_is_refused_v53(stage: SimStage) -> None:
    _, broker, client = await connected(stage)
    answer = await broker.register(topics=("T",))
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, "register broker failed")
    assert (await client.cluster_info()).cluster_addr_table == {}
    (await broker.register()).require_success()
    (await broker.register(topics=("N",), version=(1, 2))).require_success()
    await client.route("N")


def test_versions_are_equal_when_timestamp_and_counter_are() -> None:
    assert DataVersion(timestamp=1, counter=2) == DataVersion(timestamp=1, counter=2)
    assert DataVersion(timestamp=1, counter=2) != DataVersion(timestamp=1, counter=3)
    assert DataVersion(timestamp=1, counter=2) != DataVersion(timestamp=2, counter=2)
