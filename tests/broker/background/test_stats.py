"""Rates of pulled messages by topic and group: a table that does not grow for ever."""

from __future__ import annotations

import pytest

from rewindmq.broker.background import stats
from rewindmq.broker.background.stats import SAMPLE_SECONDS, BrokerStats


def sampled(counters: BrokerStats, first: int, last: int) -> None:
    """Take the samples ``first`` to ``last``, ``SAMPLE_SECONDS`` apart."""
    for number in range(first, last + 1):
        counters.sample(0, number * SAMPLE_SECONDS)


def test_a_rate_is_that_of_the_last_minute() -> None:
    counters = BrokerStats(0, 0.0)
    counters.count_get("T", "G", 30)
    assert counters.consume_tps("T", "G") == 0.0
    sampled(counters, 1, 1)
    assert counters.consume_tps("T", "G") == 3.0
    sampled(counters, 2, 3)
    assert counters.consume_tps("T", "G") == 1.0
    counters.count_get("T", "G", 60)
    sampled(counters, 4, 6)
    assert counters.consume_tps("T", "G") == 1.5
    sampled(counters, 7, 7)
    assert counters.consume_tps("T", "G") == 1.0
    sampled(counters, 8, 10)
    assert counters.consume_tps("T", "G") == 0.0


def test_pairs_beyond_the_limit_have_no_rate_until_others_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats, "MAX_RATED_PAIRS", 2)
    counters = BrokerStats(0, 0.0)
    for group in ("A", "B", "C", "A"):
        counters.count_get("T", group, 10)
    sampled(counters, 1, 1)
    assert [counters.consume_tps("T", group) for group in "ABC"] == [2.0, 1.0, 0.0]
    counters.count_get("T", "C", 10)
    sampled(counters, 2, 2)
    assert counters.consume_tps("T", "C") == 0.5
    assert counters.get_total == 50


def test_a_pair_without_pulls_leaves_the_memory() -> None:
    counters = BrokerStats(0, 0.0)
    counters.count_get("T", "G", 10)
    sampled(counters, 1, 8)
    assert not any(gets for _, gets in counters._group_samples)
    assert not counters._group_gets
