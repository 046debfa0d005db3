"""The distribution of puts over intervals, and their percentiles, in RocketMQ's format."""

from __future__ import annotations

import pytest

from rewindmq.broker.stats.put_times import PutTimes

MINUTE = 6


def after_a_minute(total: int, *slow: int) -> PutTimes:
    times = PutTimes()
    for ms in slow:
        times.add_slow(ms)
    for _ in range(MINUTE):
        times.sample(total)
    return times


def test_the_first_minute_is_null_as_in_rocketmq() -> None:
    times = PutTimes()
    for _ in range(MINUTE - 1):
        times.sample(5)
    assert times.distribution() == "null"
    assert times.percentile(0.99) == 0.0


def test_puts_are_counted_by_their_interval() -> None:
    slow = (
        1,
        9,
        10,
        49,
        50,
        99,
        100,
        199,
        200,
        499,
        500,
        999,
        1_000,
        2_000,
        3_000,
        4_000,
        5_000,
        9_999,
        10_000,
    )
    times = after_a_minute(7 + len(slow), *slow)
    assert times.distribution() == (
        "[<=0ms]:7 [0~10ms]:2 [10~50ms]:2 [50~100ms]:2 [100~200ms]:2 [200~500ms]:2 [500ms~1s]:2 [1~2s]:1"
        " [2~3s]:1 [3~4s]:1 [4~5s]:1 [5~10s]:2 [10s~]:1 "
    )
    assert times.longest == 10_000


def test_each_minute_begins_anew() -> None:
    times = after_a_minute(10, 5)
    assert times.distribution().startswith("[<=0ms]:9 [0~10ms]:1 ")
    times.add_slow(20)
    for _ in range(MINUTE):
        times.sample(13)
    assert times.distribution().startswith("[<=0ms]:2 [0~10ms]:0 [10~50ms]:1 ")
    for _ in range(MINUTE):
        times.sample(13)
    assert times.distribution().startswith("[<=0ms]:0 [0~10ms]:0 [10~50ms]:0 ")
    assert times.longest == 20


@pytest.mark.parametrize(
    ("total", "slow", "p99", "p999"),
    [
        (0, (), 0.0, 0.0),
        # All 1,000 in [0, 1]: 990 and 999 thousandths of it.
        (1_000, (), 0.99, 0.999),
        # The 99th of 100 puts is the first of two in (6, 7], so it is taken as half of that interval.
        (100, (7, 7), 6.5, 6.5),
        # int(2 * 0.99) is 1: the first of the two puts, which took up to 1 ms.
        (2, (300,), 1.0, 1.0),
        # int(1 * 0.99) is 0, which the first interval reaches.
        (1, (400,), 0.0, 0.0),
    ],
)
def test_percentiles_are_interpolated_as_in_findPutMessageEntireTimePX(
    total: int, slow: tuple[int, ...], p99: float, p999: float
) -> None:
    times = after_a_minute(total, *slow)
    assert (times.percentile(0.99), times.percentile(0.999)) == pytest.approx((p99, p999))
