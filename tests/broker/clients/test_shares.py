"""What one connection may put into the tables of online groups; others are still served."""

from __future__ import annotations

import pytest

from rewindmq.broker.clients import consumer_manager, memberships
from rewindmq.broker.clients.consumer_manager import subscription_bytes
from rewindmq.broker.context import BrokerContext
from rewindmq.broker.limits import MAX_CLIENT_ID_LENGTH
from rewindmq.broker.shares import Shares
from rewindmq.protocol.body.heartbeat import ConsumerData, HeartbeatData, ProducerData, SubscriptionData
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.client import UnregisterClientRequestHeader
from rewindmq.protocol.subscription import build_subscription_data
from tests.support.answers import present, remark_of
from tests.support.ends import new_end
from tests.support.fixtures import RunScenario, simulated
from tests.support.peer import Peer
from tests.support.stage import SimStage


def used(context: BrokerContext) -> tuple[int, int, int]:
    """Entries of the producers', the consumers' and the subscriptions' tables."""
    return (
        context.clients.producers.memberships.shares.used,
        context.clients.consumers.memberships.shares.used,
        context.clients.consumers.subscription_shares.used,
    )


async def beat(peer: Peer, *consumers: ConsumerData, producers: int = 0) -> RemotingCommand:
    made = [ProducerData(f"{peer.client_id}-{number}") for number in range(producers)]
    return await peer.ask(RequestCode.HEART_BEAT, body=HeartbeatData(peer.client_id, made, list(consumers)))


def consumer(group: str, *subscriptions: SubscriptionData) -> ConsumerData:
    return ConsumerData(group, subscription_data_set=list(subscriptions))


@pytest.mark.parametrize("kind", ["producer", "consumer"])
def test_one_connection_takes_its_share_of_groups_and_others_are_served(
    simulate: RunScenario, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(memberships, "MAX_GROUPS_PER_CONNECTION", 3)
    monkeypatch.setattr(memberships, "MAX_GROUPS", 5)

    async def join(peer: Peer, first: int, last: int) -> RemotingCommand:
        names = [f"{peer.client_id}-{number}" for number in range(first, last)]
        if kind == "producer":
            body = HeartbeatData(peer.client_id, [ProducerData(name) for name in names], [])
        else:
            body = HeartbeatData(peer.client_id, [], [ConsumerData(name) for name in names])
        return await peer.ask(RequestCode.HEART_BEAT, body=body)

    async def scenario(stage: SimStage) -> None:
        context = stage.broker.context
        greedy, other = stage.peer("greedy"), stage.peer("other")
        (await join(greedy, 0, 3)).require_success()
        (await join(greedy, 0, 3)).require_success()
        refused = await join(greedy, 3, 4)
        assert refused.code == ResponseCode.SYSTEM_ERROR
        assert refused.remark == f"this connection has 3 {kind} groups already, of 3"
        (await join(other, 0, 2)).require_success()
        # A heartbeat with one group too many joins none.
        await join(stage.peer("late"), 0, 1)
        assert sum(used(context)) == 5
        await greedy.client.close()
        await stage.at(1.0)
        assert sum(used(context)) == 2
        (await join(stage.peer("late"), 0, 3)).require_success()
        assert sum(used(context)) == 5

    simulate(scenario)


def test_leaving_a_group_gives_its_place_back(simulate: RunScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memberships, "MAX_GROUPS_PER_CONNECTION", 1)

    async def scenario(stage: SimStage) -> None:
        peer = stage.peer("c1")
        for group in ("A", "B"):
            (await peer.heartbeat(group, producers=[group])).require_success()
            assert used(stage.broker.context)[:2] == (1, 1)
            header = UnregisterClientRequestHeader("c1", group, group)
            (await peer.ask(RequestCode.UNREGISTER_CLIENT, header)).require_success()
            assert used(stage.broker.context) == (0, 0, 0)

    simulate(scenario)


@simulated()
async def test_a_silent_client_gives_its_places_back(stage: SimStage) -> None:
    await stage.peer("c1").heartbeat(producers=["P"])
    await stage.at(131.0)
    assert used(stage.broker.context) == (0, 0, 0)


def test_subscriptions_up_to_the_share_are_kept_and_larger_ones_register_nothing(
    simulate: RunScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = build_subscription_data("T", "||".join(f"tag{number}" for number in range(100)))
    small = build_subscription_data("T", "*", sub_version=1)
    size = subscription_bytes(large)
    monkeypatch.setattr(consumer_manager, "MAX_SUBSCRIPTION_BYTES_PER_CONNECTION", 2 * size)

    async def scenario(stage: SimStage) -> None:
        context = stage.broker.context
        greedy, other = stage.peer("greedy"), stage.peer("other")
        fitting = (consumer("A", large), consumer("B", large))
        (await beat(greedy, *fitting)).require_success()
        (await beat(greedy, *fitting)).require_success()
        assert used(context)[2] == 2 * size
        refused = await beat(greedy, consumer("C", small), producers=1)
        assert refused.code == ResponseCode.SYSTEM_ERROR
        assert "bytes of subscriptions already" in remark_of(refused)
        assert context.clients.consumers.find("C") is None
        assert not context.clients.producers.groups()
        (await beat(other, consumer("C", large))).require_success()
        # A smaller subscription makes room.
        (await beat(greedy, consumer("A", small), consumer("B", large))).require_success()
        (await beat(greedy, consumer("D", small))).require_success()
        await greedy.client.close()
        await other.client.close()
        await stage.at(1.0)
        assert used(context) == (0, 0, 0)

    simulate(scenario)


def test_all_subscriptions_together_have_a_limit(
    simulate: RunScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscription = build_subscription_data("T", "*")
    size = subscription_bytes(subscription)
    monkeypatch.setattr(consumer_manager, "MAX_SUBSCRIPTION_BYTES", 2 * size)

    async def scenario(stage: SimStage) -> None:
        first, second, third = (stage.peer(name) for name in ("c1", "c2", "c3"))
        (await beat(first, consumer("A", subscription))).require_success()
        (await beat(second, consumer("B", subscription))).require_success()
        refused = await beat(third, consumer("C", subscription))
        assert (refused.code, refused.remark) == (
            ResponseCode.SYSTEM_ERROR,
            f"there are {2 * size} bytes of subscriptions already, of {2 * size}",
        )
        # A second consumer of a group adds nothing.
        (await beat(third, consumer("A", subscription))).require_success()

    simulate(scenario)


def test_a_group_keeps_its_subscriptions_counted_when_the_one_who_set_them_closes(
    simulate: RunScenario,
) -> None:
    large = build_subscription_data("T", "x" * 1_000, sub_version=9)
    small = build_subscription_data("T", "*", sub_version=1)

    async def scenario(stage: SimStage) -> None:
        context = stage.broker.context
        setter, other = stage.peer("c1"), stage.peer("c2")
        await beat(other, consumer("G", small))
        await beat(setter, consumer("G", large))
        # The newer version stays, whoever sends the latest heartbeat.
        await beat(other, consumer("G", small))
        assert present(context.clients.consumers.find("G")).subscriptions == {"T": large}
        await setter.client.close()
        await stage.at(1.0)
        assert used(context)[2] == subscription_bytes(large)
        (await beat(other, consumer("G", small))).require_success()
        await other.client.close()
        await stage.at(2.0)
        assert used(context) == (0, 0, 0)

    simulate(scenario)


def test_a_group_listed_twice_in_a_heartbeat_keeps_the_newer_subscription(simulate: RunScenario) -> None:
    newer = build_subscription_data("T", "x" * 1_000, sub_version=9)
    older = build_subscription_data("T", "*", sub_version=1)

    async def scenario(stage: SimStage) -> None:
        context, peer = stage.broker.context, stage.peer("c1")
        (await beat(peer, consumer("G", newer), consumer("G", older))).require_success()
        assert present(context.clients.consumers.find("G")).subscriptions == {"T": newer}
        assert used(context)[1:] == (1, subscription_bytes(newer))
        # The last list decides about the topics.
        (await beat(peer, consumer("G", older), consumer("G"))).require_success()
        assert present(context.clients.consumers.find("G")).subscriptions == {}
        assert used(context)[1:] == (1, 0)

    simulate(scenario)


@simulated()
async def test_a_client_id_has_a_longest_length(stage: SimStage) -> None:
    (await stage.peer("c" * MAX_CLIENT_ID_LENGTH).heartbeat()).require_success()
    refused = await stage.peer("c" * (MAX_CLIENT_ID_LENGTH + 1)).heartbeat("H")
    assert refused.code == ResponseCode.SYSTEM_ERROR
    assert stage.broker.context.clients.consumers.find("H") is None


def test_shares_count_for_each_connection_and_in_all() -> None:
    shares = Shares("things", 2, 3)
    one, other = new_end(), new_end()
    shares.check(one, 2)
    shares.add(one, 2)
    with pytest.raises(RequestError, match="this connection has 2 things already, of 2"):
        shares.check(one)
    assert shares.has_room(other)
    shares.add(other)
    with pytest.raises(RequestError, match="there are 3 things already, of 3"):
        shares.check(other)
    assert not shares.has_room(other)
    shares.remove(one, 2)
    shares.remove(other)
    assert (shares.used, shares.of(one), shares.of(other)) == (0, 0, 0)
