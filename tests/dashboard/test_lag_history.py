"""The samples of a group's lag: bounded, and whole whatever clocks, brokers and peers do."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from rewindmq import AdminClient
from rewindmq.dashboard.app import make_app
from rewindmq.dashboard.data.cluster_source import ClusterSource
from rewindmq.dashboard.data.lag_history import MAX_GROUPS, MAX_SAMPLES, LagHistory, LagSamples
from rewindmq.dashboard.serving import serving
from rewindmq.dashboard.web.page import DashboardSettings
from rewindmq.dashboard.web.plot import line_plot, spark_line
from rewindmq.protocol.body.stats import ConsumeStats, OffsetWrapper
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.remoting.runtime import system_runtime
from tests.dashboard.scripted import Answers, name_server, scripted, success
from tests.dashboard.site import HOSTS, Site

QUEUE, OTHER = MessageQueue("t", "b", 0), MessageQueue("t", "c", 0)
INT64 = 2**63


@dataclass
class HandClock:
    """A clock that shows what the test sets."""

    wall_ms: int = 1_000_000
    seconds: float = 50.0
    scale: float = 1.0

    def now_ms(self) -> int:
        return self.wall_ms

    def monotonic(self) -> float:
        return self.seconds

    def pass_ms(self, ms: int, wall_ms: int | None = None) -> None:
        """Let time pass; ``wall_ms``: the wall clock was set meanwhile, and moved by so much."""
        self.seconds += ms / 1000
        self.wall_ms += ms if wall_ms is None else wall_ms


def _samples(clock: HandClock, history: LagHistory, lags: list[int]) -> LagSamples:
    for lag in lags:
        clock.pass_ms(2000)
        samples = history.add("g", {QUEUE: lag})
    return samples


def test_the_samples_of_a_group_are_bounded_and_keep_their_begin() -> None:
    clock = HandClock()
    history = LagHistory(clock)
    samples = _samples(clock, history, [*range(10 * MAX_SAMPLES)])
    assert len(samples.times) <= MAX_SAMPLES
    assert (samples.times[0], samples.totals[0]) == (1_002_000, 0)
    assert samples.totals[-1] == samples.of_queue(QUEUE)[-1] == 10 * MAX_SAMPLES - 1
    assert samples.times == sorted(samples.times)
    for number in range(MAX_GROUPS):
        history.add(f"other-{number}", {QUEUE: 0})
    assert history.find("g") is None
    assert len(history.add("g", {QUEUE: 5}).times) == 1


def test_two_viewers_at_the_same_moment_are_one_sample() -> None:
    clock = HandClock()
    history = LagHistory(clock)
    history.add("g", {QUEUE: 1})
    clock.pass_ms(100)
    assert history.add("g", {QUEUE: 1}).times == [1_000_000]


def test_a_clock_that_is_set_back_moves_the_samples_with_it_and_the_plot_goes_on() -> None:
    clock = HandClock()
    history = LagHistory(clock)
    _samples(clock, history, [1, 2, 3])
    clock.pass_ms(2000, wall_ms=-3_600_000)
    samples = history.add("g", {QUEUE: 4})
    assert samples.totals == [1, 2, 3, 4]
    assert samples.times == [clock.wall_ms - back for back in (6000, 4000, 2000, 0)]


def test_a_clock_that_is_set_forward_or_adjusted_keeps_the_samples_where_they_are() -> None:
    clock = HandClock()
    history = LagHistory(clock)
    before = list(_samples(clock, history, [1, 2]).times)
    clock.pass_ms(2000, wall_ms=1900)
    clock.pass_ms(2000, wall_ms=3_600_000)
    assert history.add("g", {QUEUE: 3}).times == [*before, clock.wall_ms]


@pytest.mark.parametrize("lag", [INT64, 2 * INT64 - 1, -INT64 - 5, 10**40])
def test_a_lag_that_no_broker_has_is_kept_and_drawn(lag: int) -> None:
    clock = HandClock()
    samples = _samples(clock, LagHistory(clock), [lag, 1])
    assert samples.totals == [lag, 1]
    assert -INT64 <= samples.of_queue(QUEUE)[0] < INT64
    assert line_plot(samples.times, samples.totals) is not None
    assert spark_line(samples.times, samples.of_queue(QUEUE)) is not None


def test_the_samples_of_all_queues_wait_while_a_broker_is_away() -> None:
    clock = HandClock()
    history = LagHistory(clock)
    history.add("g", {QUEUE: 1, OTHER: 1})
    clock.pass_ms(2000)
    assert history.add("g", {QUEUE: 1}).totals == [1]
    clock.pass_ms(2000)
    assert history.add("g", {QUEUE: 1, OTHER: 3}).totals == [2, 4]


async def test_the_plot_stays_while_a_broker_has_no_answer() -> None:
    stats: list[RemotingCommand] = [
        success(ConsumeStats({QUEUE: OffsetWrapper(INT64 - 1, -lag)})) for lag in (7, 8)
    ]
    answers: Answers = {
        RequestCode.GET_CONSUME_STATS: lambda _, request: (
            stats.pop(0) if stats else RemotingCommand(ResponseCode.SYSTEM_BUSY)
        ),
        RequestCode.GET_CONSUMER_CONNECTION_LIST: lambda _, request: RemotingCommand(
            ResponseCode.CONSUMER_NOT_ONLINE
        ),
    }
    clock = HandClock()
    settings = DashboardSettings("form-token", hosts=HOSTS)
    async with (
        scripted(system_runtime(), "127.0.0.1", answers) as broker,
        scripted(system_runtime(), "127.0.0.1", name_server({"b": broker.address})) as namesrv,
        AdminClient(namesrv.address, runtime=replace(system_runtime(), clock=clock)) as admin,
        serving(make_app(ClusterSource(admin), settings), "127.0.0.1", 0) as url,
    ):
        site = Site(url, settings)
        assert "The plot of the lag begins now" in (await site.get("/groups/g")).text
        clock.pass_ms(2000)
        assert '<svg class="plot"' in (await site.get("/groups/g")).text
        clock.pass_ms(2000)
        page = await site.get("/groups/g")
    assert "<b>b</b>: SYSTEM_BUSY (2)." in page.text
    assert '<svg class="plot"' in page.text
