"""The metrics that one answer to GET_BROKER_RUNTIME_INFO (28) feeds, with rocketmq-exporter's names.

The names are those of its ``RMQMetricsCollector``, the parts of a value those that its ``BrokerRuntimeStats``
reads. Changed: there one key that is missing or does not parse costs all metrics of the broker; here it costs
its own, so that a RocketMQ of any age, and one in its first seconds, has the rest.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

PREFIX: Final = "rocketmq_brokeruntime_"
_CAPACITY: Final = re.compile(r"Total : ([0-9.]+) ([KMGTPE]?)i?B, Free : ([0-9.]+) ([KMGTPE]?)i?B\.")
_UNITS: Final = ("", "K", "M", "G", "T", "P", "E")
_INTERVAL: Final = re.compile(r"\[([^\]:]+)\]:([0-9]+)")

# The suffix of each metric and its value, of one key's text. Raises ValueError for a text in another form.
_Read: TypeAlias = Callable[[str], Iterator[tuple[str, float]]]


class RuntimeKey(NamedTuple):
    """A key of 28, and what follows ``rocketmq_brokeruntime_`` in the name of each metric that it feeds."""

    key: str
    suffixes: tuple[str, ...]
    read: _Read


def _number(suffix: str) -> _Read:
    """One number, before a blank and its unit if it has one."""

    def read(text: str) -> Iterator[tuple[str, float]]:
        yield suffix, float(text.split(" ", 1)[0])

    return read


def _rates(suffixes: tuple[str, ...]) -> _Read:
    """Up to three rates per second: of the last 10 s, 60 s and 600 s; fewer until a window has passed."""

    def read(text: str) -> Iterator[tuple[str, float]]:
        yield from zip(suffixes, map(float, text.split()), strict=False)

    return read


def _capacity(text: str) -> Iterator[tuple[str, float]]:
    """The bytes of the disk, rounded as the broker wrote them."""
    found = _CAPACITY.fullmatch(text)
    if found is None:
        raise ValueError(f"no capacity: {text!r}")
    total, total_unit, free, free_unit = found.groups()
    yield "commitlogdir_capacity_total", float(total) * 1024 ** _UNITS.index(total_unit)
    yield "commitlogdir_capacity_free", float(free) * 1024 ** _UNITS.index(free_unit)


_PUTS: Final = MappingProxyType(
    {
        "<=0ms": "pmdt_0ms",
        "0~10ms": "pmdt_0to10ms",
        "10~50ms": "pmdt_10to50ms",
        "50~100ms": "pmdt_50to100ms",
        "100~200ms": "pmdt_100to200ms",
        "200~500ms": "pmdt_200to500ms",
        "500ms~1s": "pmdt_500to1s",
        "1~2s": "pmdt_1to2s",
        "2~3s": "pmdt_2to3s",
        "3~4s": "pmdt_3to4s",
        "4~5s": "pmdt_4to5s",
        "5~10s": "pmdt_5to10s",
        "10s~": "pmdt_10stomore",
    }
)


def _puts(text: str) -> Iterator[tuple[str, float]]:
    """Puts of the last minute by duration; none of ``null``, which stands there before the first minute."""
    for interval, count in _INTERVAL.findall(text):
        if interval in _PUTS:
            yield _PUTS[interval], float(count)


_NUMBERS: Final = (
    ("commitLogDiskRatio", "commitlog_disk_ratio"),
    ("commitLogMaxOffset", "commitlog_maxoffset"),
    ("commitLogMinOffset", "commitlog_minoffset"),
    ("consumeQueueDiskRatio", "consumequeue_disk_ratio"),
    ("dispatchBehindBytes", "dispatch_behind_bytes"),
    ("dispatchMaxBuffer", "dispatch_maxbuffer"),
    ("earliestMessageTimeStamp", "earliest_message_timestamp"),
    ("getMessageEntireTimeMax", "getmessage_entire_time_max"),
    ("msgGetTotalTodayMorning", "msg_gettotal_todaymorning"),
    ("msgGetTotalTodayNow", "msg_gettotal_today_now"),
    ("msgGetTotalYesterdayMorning", "msg_gettotal_yesterdaymorning"),
    ("msgPutTotalTodayMorning", "msg_puttotal_todaymorning"),
    ("msgPutTotalTodayNow", "msg_put_total_today_now"),
    ("msgPutTotalYesterdayMorning", "msg_puttotal_yesterdaymorning"),
    ("pageCacheLockTimeMills", "pagecache_lock_time_mills"),
    ("pullThreadPoolQueueCapacity", "pull_threadpoolqueue_capacity"),
    ("pullThreadPoolQueueHeadWaitTimeMills", "pull_threadpoolqueue_headwait_timemills"),
    ("pullThreadPoolQueueSize", "pull_threadpoolqueue_size"),
    ("putLatency99", "put_latency_99"),
    ("putLatency999", "put_latency_999"),
    ("putMessageAverageSize", "put_message_average_size"),
    ("putMessageEntireTimeMax", "putmessage_entire_time_max"),
    ("putMessageSizeTotal", "put_message_size_total"),
    ("putMessageTimesTotal", "putmessage_times_total"),
    ("queryThreadPoolQueueCapacity", "query_threadpool_queue_capacity"),
    ("queryThreadPoolQueueHeadWaitTimeMills", "query_threadpoolqueue_headwait_timemills"),
    ("queryThreadPoolQueueSize", "query_threadpoolqueue_size"),
    ("remainHowManyDataToFlush", "remain_howmanydata_toflush"),
    ("remainTransientStoreBufferNumbs", "remain_transientstore_buffer_numbs"),
    ("sendThreadPoolQueueCapacity", "send_threadpoolqueue_capacity"),
    ("sendThreadPoolQueueHeadWaitTimeMills", "send_threadpoolqueue_headwait_timemills"),
    ("sendThreadPoolQueueSize", "send_threadpool_queue_size"),
    ("startAcceptSendRequestTimeStamp", "start_accept_sendrequest_time"),
)
_RATES: Final = (
    ("getFoundTps", "getfound_tps"),
    ("getMissTps", "getmiss_tps"),
    ("getTotalTps", "gettotal_tps"),
    ("getTransferedTps", "gettransfered_tps"),
    ("putTps", "put_tps"),
)


def _keys() -> Iterator[RuntimeKey]:
    for key, suffix in _NUMBERS:
        yield RuntimeKey(key, (suffix,), _number(suffix))
    for key, stem in _RATES:
        suffixes = tuple(f"{stem}{seconds}" for seconds in (10, 60, 600))
        yield RuntimeKey(key, suffixes, _rates(suffixes))
    capacities = ("commitlogdir_capacity_total", "commitlogdir_capacity_free")
    yield RuntimeKey("commitLogDirCapacity", capacities, _capacity)
    yield RuntimeKey("putMessageDistributeTime", tuple(_PUTS.values()), _puts)


# Every key of 28 that feeds a metric, each once.
RUNTIME_KEYS: Final = tuple(_keys())
# Newer releases of 5.x write this key, older ones the other, some both.
_RENAMED: Final = MappingProxyType({"getTransferedTps": "getTransferredTps"})


def runtime_metrics(table: Mapping[str, str]) -> dict[str, float]:
    """The value of each metric, by name, that a broker's table of 28 has.

    A key that is absent, empty or in another form leaves out its own metrics and no others.
    """
    values: dict[str, float] = {}
    for key in RUNTIME_KEYS:
        text = table.get(key.key) or table.get(_RENAMED.get(key.key, ""), "")
        try:
            pairs = list(key.read(text))
        except ValueError:
            continue
        values |= {PREFIX + suffix: value for suffix, value in pairs if math.isfinite(value)}
    return values
