"""Allocation strategies: how queues are divided among clients."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewindmq.client.consume.allocate import (
    AllocateAveragely,
    AllocateByCircle,
    AllocateByConfig,
    AllocateByMachineRoom,
    AllocateConsistentHash,
    AllocateStrategy,
    md5_hash,
)
from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.message_queue import MessageQueue

G = "G"


def queues(count: int, broker: str = "broker-a") -> list[MessageQueue]:
    return [MessageQueue("T", broker, queue_id) for queue_id in range(count)]


def ids(strategy: AllocateStrategy, count: int, clients: list[str]) -> list[set[int]]:
    every = queues(count)
    return [{queue.queue_id for queue in strategy.allocate(G, client, every, clients)} for client in clients]


def test_C02_eight_queues_for_three_clients() -> None:
    assert ids(AllocateAveragely(), 8, ["a", "b", "c"]) == [{0, 1, 2}, {3, 4, 5}, {6, 7}]


def test_C03_the_third_of_three_clients_gets_none_of_two_queues() -> None:
    assert ids(AllocateAveragely(), 2, ["a", "b", "c"]) == [{0}, {1}, set()]


def test_four_queues_for_three_clients() -> None:
    assert ids(AllocateAveragely(), 4, ["a", "b", "c"]) == [{0, 1}, {2}, {3}]


def test_by_circle_deals_queues_out_one_by_one() -> None:
    assert ids(AllocateByCircle(), 5, ["a", "b"]) == [{0, 2, 4}, {1, 3}]


@pytest.mark.parametrize(
    "strategy",
    [AllocateAveragely(), AllocateByCircle(), AllocateByMachineRoom(["r"]), AllocateConsistentHash()],
    ids=lambda strategy: strategy.name,
)
def test_a_client_the_broker_does_not_list_gets_nothing(strategy: AllocateStrategy) -> None:
    assert strategy.allocate(G, "stranger", queues(4), ["a", "b"]) == []


def test_by_config_is_a_fixed_list() -> None:
    mine = queues(2)
    assert AllocateByConfig(mine).allocate(G, "a", queues(8), ["a", "b"]) == mine


def test_by_machine_room_takes_only_brokers_of_the_rooms() -> None:
    every = queues(3, "r1@broker-a") + queues(2, "r2@broker-b") + queues(2, "broker-c")
    strategy = AllocateByMachineRoom(["r1"])
    first = strategy.allocate(G, "a", every, ["a", "b"])
    second = strategy.allocate(G, "b", every, ["a", "b"])
    assert [queue.queue_id for queue in first] == [0, 2]
    assert [queue.queue_id for queue in second] == [1]
    assert {queue.broker_name for queue in first + second} == {"r1@broker-a"}


def test_consistent_hash_moves_only_the_queues_of_a_client_that_left() -> None:
    strategy = AllocateConsistentHash()
    every = queues(64)
    before = {client: set(strategy.allocate(G, client, every, ["a", "b", "c"])) for client in "abc"}
    after = {client: set(strategy.allocate(G, client, every, ["a", "b"])) for client in "ab"}
    assert before["a"] <= after["a"]
    assert before["b"] <= after["b"]
    assert before["c"]


def test_consistent_hash_reads_the_first_four_bytes_of_the_md5() -> None:
    # printf a | md5sum: 0cc175b9...
    assert md5_hash("a") == 0x0CC175B9


def test_consistent_hash_refuses_a_negative_number_of_virtual_nodes() -> None:
    with pytest.raises(ClientError, match="illegal virtualNodeCnt"):
        AllocateConsistentHash(-1)


@settings(derandomize=True, deadline=None)
@given(
    count=st.integers(0, 40),
    clients=st.integers(1, 12),
    strategy=st.sampled_from([AllocateAveragely(), AllocateByCircle(), AllocateConsistentHash()]),
)
def test_every_queue_has_exactly_one_owner(count: int, clients: int, strategy: AllocateStrategy) -> None:
    names = [f"client-{number:02d}" for number in range(clients)]
    shares = ids(strategy, count, names)
    assert sorted(queue_id for share in shares for queue_id in share) == list(range(count))
    if not isinstance(strategy, AllocateConsistentHash):
        sizes = [len(share) for share in shares]
        assert max(sizes) - min(sizes) <= 1
