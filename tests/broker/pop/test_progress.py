"""What a broker says of the messages in flight and of the revive topic, in 208, 317 and 28."""

from __future__ import annotations

from rewindmq.protocol.body.kv import KVTable
from rewindmq.protocol.body.stats import ConsumeStats, ConsumeStatsList
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.header.admin import GetConsumeStatsInBrokerHeader, GetConsumeStatsRequestHeader
from rewindmq.protocol.profile import Profile
from tests.broker.pop.asking import ack_all, pop
from tests.support.fixtures import simulated
from tests.support.peer import Peer
from tests.support.stage import SimStage


def in_flight(stats: ConsumeStats) -> dict[tuple[str, int], int]:
    return {
        (queue.topic, queue.queue_id): row.pop_inflight
        for queue, row in stats.offset_table.items()
        if row.pop_inflight is not None
    }


async def of_group(peer: Peer) -> dict[tuple[str, int], int]:
    response = await peer.ask(RequestCode.GET_CONSUME_STATS, GetConsumeStatsRequestHeader("G"))
    return in_flight(decode_body(response.require_success(), ConsumeStats))


async def of_broker(peer: Peer) -> dict[tuple[str, int], int]:
    response = await peer.ask(RequestCode.GET_BROKER_CONSUME_STATS, GetConsumeStatsInBrokerHeader(False))
    (groups,) = [
        each["G"]
        for each in decode_body(response.require_success(), ConsumeStatsList).consume_stats_list
        if "G" in each
    ]
    return {key: count for stats in groups for key, count in in_flight(stats).items()}


async def revive_lag(peer: Peer) -> list[tuple[int, int]]:
    """Return records and milliseconds of the queues of the revive topic that are behind."""
    table = decode_body(
        (await peer.ask(RequestCode.GET_BROKER_RUNTIME_INFO)).require_success(), KVTable
    ).table
    texts = [text.split(",") for key, text in table.items() if key.startswith("popRevive_")]
    assert len(texts) == 8
    return [(int(records), int(age)) for records, age in texts if (records, age) != ("0", "0")]


@simulated(profile=Profile.V53)
async def test_messages_in_flight_are_counted_until_they_are_acknowledged_or_revived(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic(write=2, read=2)
    for number in range(4):
        (await peer.send(body=b"m%d" % number, queue_id=number % 2)).require_success()
    assert await revive_lag(peer) == []
    popped = await pop(peer)
    assert await of_group(peer) == await of_broker(peer) == {("T", 0): 2, ("T", 1): 2}
    await ack_all(peer, popped.messages[:3])
    (late,) = popped.messages[3:]
    assert await of_group(peer) == {("T", late.queue_id): 1}
    # The checkpoints are in the revive topic a second before the messages are visible, the acks with it.
    await stage.at(10.5)
    lag = await revive_lag(peer)
    assert sum(records for records, _ in lag) == 5
    assert all(0 < age <= 2_000 for _, age in lag)
    await stage.at(20.0)
    assert await revive_lag(peer) == []
    assert await of_group(peer) == {}
    assert len((await pop(peer)).messages) == 1
    assert await of_group(peer) == {("%RETRY%G_T", 0): 1}


@simulated(profile=Profile.V49)
async def test_a_broker_without_pop_says_nothing_of_it(stage: SimStage) -> None:
    peer = stage.peer()
    table = decode_body(
        (await peer.ask(RequestCode.GET_BROKER_RUNTIME_INFO)).require_success(), KVTable
    ).table
    assert not [key for key in table if key.startswith("pop")]
