"""How a broker divides queues: pulling gives each queue once, POP shares as many as it is told."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindmq.broker.assignment.load_balance import STRATEGIES, Place, find_place, pop_share, pull_share
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.remoting.slices.run import run_at_once

STRATEGY = st.sampled_from(sorted(STRATEGIES))
CLIENTS = st.lists(st.text("abc-9", min_size=1, max_size=4), min_size=1, max_size=12, unique=True)


def topic(*queues: int) -> list[MessageQueue]:
    """Return the queues of brokers with so many queues each."""
    return [MessageQueue("T", f"b{n}", each) for n, count in enumerate(queues) for each in range(count)]


def places(clients: list[str]) -> list[Place]:
    return [run_at_once(find_place(client, clients)) for client in clients]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=3), CLIENTS, STRATEGY)
def test_each_queue_is_pulled_by_one_client(counts: list[int], clients: list[str], strategy: str) -> None:
    every = topic(*counts)
    shares = [pull_share(every, place, STRATEGIES[strategy]) for place in places(clients)]
    assert sorted(queue for share in shares for queue in share) == every
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@given(st.lists(st.integers(0, 9), min_size=1, max_size=3), CLIENTS, STRATEGY, st.integers(-1, 14))
def test_each_queue_is_popped_by_as_many_clients_as_share(
    counts: list[int], clients: list[str], strategy: str, share_num: int
) -> None:
    every = topic(*counts)
    shares = [pop_share(every, place, STRATEGIES[strategy], share_num) for place in places(clients)]
    popped = Counter(queue for share in shares for queue in share)
    if share_num <= 0 or share_num >= len(clients) - 1:
        brokers = {MessageQueue("T", queue.broker_name, -1) for queue in every}
        assert popped == dict.fromkeys(brokers, len(clients))
    elif len(clients) > len(every):
        assert all(len(share) == min(len(every), 1) for share in shares)
        assert set(popped) == set(every)
    else:
        assert popped == dict.fromkeys(every, share_num + 1)


@given(CLIENTS, st.text("abc-9", min_size=1, max_size=4))
def test_a_place_is_that_in_the_sorted_list(clients: list[str], client: str) -> None:
    index, count = run_at_once(find_place(client, clients))
    assert count == len(clients)
    assert index == (sorted(clients).index(client) if client in clients else None)


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_a_client_that_the_group_does_not_list_pulls_nothing(strategy: str) -> None:
    stranger = Place(None, 3)
    assert pull_share(topic(4), stranger, STRATEGIES[strategy]) == []
    assert pop_share(topic(4), stranger, STRATEGIES[strategy], 1) == []
    assert pop_share(topic(4), stranger, STRATEGIES[strategy], 0) == [MessageQueue("T", "b0", -1)]
