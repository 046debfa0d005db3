"""Large heartbeats and large groups that change often leave the broker time for other clients."""

from __future__ import annotations

import asyncio

from rewindmq.broker.clients.consumer_ids_changed import PAUSE_SECONDS, SMALL_GROUP
from rewindmq.protocol.body.group import GetConsumerListByGroupResponseBody
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.header.client import GetConsumerListByGroupRequestHeader
from tests.support.fixtures import RunScenario, simulated
from tests.support.peer import Peer
from tests.support.stage import SimStage

CHANGED = RequestCode.NOTIFY_CONSUMER_IDS_CHANGED
TOPICS = [f"topic-{number:04}-{'x' * 100}" for number in range(200)]


async def ids(peer: Peer) -> list[str]:
    answer = await peer.ask(RequestCode.GET_CONSUMER_LIST_BY_GROUP, GetConsumerListByGroupRequestHeader("G"))
    return decode_body(answer.require_success(), GetConsumerListByGroupResponseBody).consumer_id_list


def test_a_request_is_answered_between_large_heartbeats_of_others(simulate: RunScenario) -> None:
    """Ten heartbeats arrive in one turn of the event loop; the other client repeats its request."""
    answered: list[str] = []

    async def scenario(stage: SimStage) -> None:
        peers = [stage.peer(f"c{number}") for number in range(10)]
        other = stage.peer("other")
        for peer in (*peers, other):
            await peer.heartbeat("Small")

        async def beat(number: int, peer: Peer) -> None:
            (await peer.heartbeat(f"G{number}", TOPICS)).require_success()
            answered.append(peer.client_id)

        async def ask() -> None:
            while len(answered) - answered.count("other") < len(peers):
                header = GetConsumerListByGroupRequestHeader("Small")
                await other.ask(RequestCode.GET_CONSUMER_LIST_BY_GROUP, header)
                answered.append("other")

        await asyncio.gather(*(beat(number, peer) for number, peer in enumerate(peers)), ask())
        for number in range(10):
            group = stage.broker.context.clients.consumers.find(f"G{number}")
            assert group is not None
            assert len(group.subscriptions) == len(TOPICS)

    simulate(scenario)
    heartbeats = [place for place, name in enumerate(answered) if name != "other"]
    assert [answered[place] for place in heartbeats] == [f"c{number}" for number in range(10)]
    # Each waits until the one before is served, which takes more than one turn.
    assert answered[heartbeats[0] : heartbeats[-1]].count("other") >= 5


@simulated()
async def test_a_connection_that_closes_before_its_heartbeat_has_its_turn_is_not_registered(
    stage: SimStage,
) -> None:
    first, second = stage.peer("c1"), stage.peer("c2")
    for peer in (first, second):
        await peer.heartbeat("Small")
    beats = [asyncio.ensure_future(peer.heartbeat("G", TOPICS)) for peer in (first, second)]
    await stage.until(lambda: bool(stage.broker._server.tasks), step=0.0)
    await second.client.close()
    await asyncio.wait(beats)
    await stage.at(1.0)
    assert await ids(first) == ["c1"]


@simulated()
async def test_a_large_group_is_notified_once_for_many_changes_and_after_the_last(stage: SimStage) -> None:
    members = SMALL_GROUP + 10
    peers = [stage.peer(f"c{number:03}") for number in range(members)]
    for peer in peers:
        await peer.heartbeat()
    await stage.at(1.0)
    first, leavers = peers[0], peers[-9:]
    before = first.count(CHANGED)
    for count, peer in enumerate(leavers):
        await stage.at(1.0 + count * 0.01)
        await peer.client.close()
    last_change = stage.world.now
    await stage.at(3.0)
    times = [second for second, request in first.received if request.code == CHANGED][before:]
    # At once, and then once for each pause of some 60 ms.
    assert times[0] == 1.0
    assert 2 <= len(times) <= 3
    assert last_change <= times[-1] <= last_change + members * PAUSE_SECONDS + 0.001
    assert await ids(first) == [f"c{number:03}" for number in range(members - 9)]


@simulated()
async def test_each_change_of_a_small_group_is_announced_at_once(stage: SimStage) -> None:
    first, second = stage.peer("c1"), stage.peer("c2")
    await first.heartbeat()
    await second.heartbeat()
    assert first.count(CHANGED) == 2
    await second.client.close()
    await stage.world.sleep(0.0001)
    assert first.count(CHANGED) == 3


@simulated()
async def test_the_list_of_consumers_is_of_now(stage: SimStage) -> None:
    """Its bytes are kept until the group changes."""
    first, second = stage.peer("c1"), stage.peer("c2")
    await first.heartbeat()
    assert await ids(first) == ["c1"]
    await second.heartbeat()
    assert await ids(first) == ["c1", "c2"]
    second.client_id = "c3"
    await second.heartbeat()
    assert await ids(first) == ["c1", "c3"]
    await second.client.close()
    await stage.at(1.0)
    assert await ids(first) == ["c1"]
