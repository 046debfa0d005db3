"""VIEW_BROKER_STATS_DATA (315) and GET_BROKER_RUNTIME_INFO (28), key by key as a RocketMQ broker's.

Both brokers get the same traffic: sends of every kind, pulls, messages sent back, a dead letter,
transactions, and a pop. docs/statistics.md has the meaning of each key, docs/compatibility.md the results.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import ClassVar, Final

import pytest

from rewindmq.protocol.body.stats import BrokerStatsData
from rewindmq.protocol.profile import Profile
from tests.interop.statistics_differences import COUNTED, EXPLAINED, KEYS, POPPED, TIMES, statistics
from tests.interop.statistics_traffic import CONFIG, Figures, Statistic, figures
from tools.interop.results import EXPLAINED as EXPLAINED_RESULT
from tools.interop.servers import ORDERED_COMMITS, RewindMQServer, RocketMQServer, Server
from tools.interop.versions import SERVER_4, SERVER_5

# v53 imitates this release.
SERVER_53: Final = "5.3.3"
# 5.x pops no messages without its timers.
TIMERS: Final[dict[str, object]] = {"timerWheelEnable": "true", "mappedFileSizeTimerLog": 1 << 20}
Pair = tuple[Figures, Figures]
Record = Callable[[str, object], None]


async def _both(servers: Iterable[Server], *, pops: bool) -> Pair:
    popped = statistics(POPPED) if pops else []
    rewindmq, rocketmq = await asyncio.gather(
        *(figures(server.broker_address, statistics(KEYS), popped) for server in servers)
    )
    return rewindmq, rocketmq


class _Compared:
    """The tests, of a profile and a release."""

    profile: ClassVar[Profile]
    release: ClassVar[str]

    @pytest.fixture(scope="class")
    @classmethod
    def both(cls) -> Iterator[Pair]:
        """The figures of a RewindMQ and of a RocketMQ broker."""
        real = {**CONFIG, **ORDERED_COMMITS, **(TIMERS if cls.profile is Profile.V53 else {})}
        with ExitStack() as exits, ThreadPoolExecutor() as threads:
            rewindmq = threads.submit(RewindMQServer, cls.profile, config=CONFIG)
            rocketmq = threads.submit(RocketMQServer, cls.release, config=real)
            servers: tuple[Server, Server] = (
                exits.enter_context(rewindmq.result()),
                exits.enter_context(rocketmq.result()),
            )
            try:
                yield asyncio.run(_both(servers, pops=cls.profile is Profile.V53))
            except BaseException as error:
                for server in servers:
                    server.note_logs(error)
                raise

    @pytest.mark.parametrize("name", [*KEYS, *POPPED])
    def test_statistic_of_315(self, both: Pair, name: str, record_property: Record) -> None:
        rewindmq, rocketmq = (
            _of(name, figures.popped if name in POPPED else figures.statistics) for figures in both
        )
        self._judge(name, rewindmq, rocketmq, record_property)

    @pytest.mark.parametrize("name", COUNTED)
    def test_value_of_28(self, both: Pair, name: str, record_property: Record) -> None:
        rewindmq, rocketmq = (figures.runtime.get(name) for figures in both)
        self._judge(name, rewindmq, rocketmq, record_property)

    def _judge(self, name: str, rewindmq: object, rocketmq: object, record_property: Record) -> None:
        """Fail for a difference without an explanation, and for an explanation without a difference."""
        why = EXPLAINED.get((name, self.release))
        if why is None:
            assert rewindmq == rocketmq
        else:
            assert rewindmq != rocketmq, f"no longer needed: {why}"
            record_property(EXPLAINED_RESULT, why)


def _of(name: str, figures: Mapping[Statistic, BrokerStatsData | None]) -> dict[str, object]:
    """Return the minute's sum and mean of each key of a statistic; of times only that they are there."""
    found: dict[str, object] = {}
    for (statistic, key), data in figures.items():
        if statistic == name and data is not None:
            minute = data.stats_minute
            found[key] = True if name in TIMES else (minute.sum, round(minute.avgpt, 6))
    return found


class Test497(_Compared):
    profile, release = Profile.V49, SERVER_4


class Test533(_Compared):
    profile, release = Profile.V53, SERVER_53


@pytest.mark.interop(full_only="4.9.7 and 5.3.3 have the same statistics")
class Test550(_Compared):
    profile, release = Profile.V53, SERVER_5
