"""rocketmq-exporter 0.0.2 and 0.0.3 find in 28 and 315 every key that they read, as they parse it.

The keys are those of its ``BrokerRuntimeStats`` and ``MetricsCollectTask``; both releases read the same. One
key that is missing or does not parse costs all metrics of GET_BROKER_RUNTIME_INFO (28).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import pytest

from rewindmq.protocol.body.kv import KVTable
from rewindmq.protocol.body.stats import BrokerStatsData
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.header.admin import ViewBrokerStatsDataRequestHeader
from rewindmq.protocol.header.message import ConsumerSendMsgBackRequestHeader
from rewindmq.protocol.profile import Profile
from tests.protocol.golden.frames import golden
from tests.support.fixtures import simulated
from tests.support.peer import Peer
from tests.support.stage import SimStage


def rates(text: str) -> list[float]:
    """Up to three rates; the exporter fails if there is none."""
    return [float(rate) for rate in text.split(" ")[:3]]


def capacity(text: str) -> tuple[float, float]:
    """Total and free bytes of the disk: words 3 and 4, 7 and 8, without the last character."""
    words = text.split(" ")
    total, free = (float(words[place]) * 1024 ** "BKMGT".index(words[place + 1][0]) for place in (2, 6))
    return total, free


def distribution(text: str) -> dict[str, int]:
    """Puts by duration; ``null`` is skipped, and so is the blank at the end."""
    pairs = (piece.split(":") for piece in text.split() if text.lower() != "null")
    return {name.strip("[]"): int(count) for name, count, *_ in pairs}


def bytes_before_blank(text: str) -> float:
    return float(text.split(" ")[0])


_TWO_OFFSETS: Final = re.compile("-?[0-9]+,-?[0-9]+")
_WHOLE: Final = """
    bootTimestamp brokerVersion commitLogMaxOffset commitLogMinOffset dispatchBehindBytes dispatchMaxBuffer
    earliestMessageTimeStamp getMessageEntireTimeMax msgGetTotalTodayMorning msgGetTotalTodayNow
    msgGetTotalYesterdayMorning msgPutTotalTodayMorning msgPutTotalTodayNow msgPutTotalYesterdayMorning
    pageCacheLockTimeMills pullThreadPoolQueueCapacity pullThreadPoolQueueHeadWaitTimeMills
    pullThreadPoolQueueSize putMessageEntireTimeMax putMessageSizeTotal putMessageTimesTotal
    queryThreadPoolQueueCapacity queryThreadPoolQueueHeadWaitTimeMills queryThreadPoolQueueSize
    remainTransientStoreBufferNumbs sendThreadPoolQueueCapacity sendThreadPoolQueueHeadWaitTimeMills
    sendThreadPoolQueueSize startAcceptSendRequestTimeStamp
"""
_FRACTIONS: Final = (
    "commitLogDiskRatio consumeQueueDiskRatio putLatency99 putLatency999 putMessageAverageSize"
)
_RATES: Final = "getFoundTps getMissTps getTotalTps getTransferedTps putTps"
_PARSERS: Final[tuple[tuple[str, Callable[[str], Any]], ...]] = (
    (_WHOLE, int),
    (_FRACTIONS, float),
    (_RATES, rates),
    ("brokerVersionDesc runtime", str),
    ("commitLogDirCapacity", capacity),
    ("putMessageDistributeTime", distribution),
    ("remainHowManyDataToFlush", bytes_before_blank),
)
# Every key of 28 that the exporter reads, and how.
RUNTIME: Final = MappingProxyType({key: parse for keys, parse in _PARSERS for key in keys.split()})
# Every statistic of 315 that it reads, with its key.
STATISTICS: Final = (
    ("TOPIC_PUT_NUMS", "T"),
    ("TOPIC_PUT_SIZE", "T"),
    ("GROUP_GET_NUMS", "T@G"),
    ("GROUP_GET_SIZE", "T@G"),
    ("SNDBCK_PUT_NUMS", "T@G"),
    ("BROKER_PUT_NUMS", "DefaultCluster"),
    ("BROKER_GET_NUMS", "DefaultCluster"),
)


def unread(table: Mapping[str, str]) -> dict[str, str | None]:
    """The keys that the exporter does not find or cannot parse, with their values."""
    wrong: dict[str, str | None] = {}
    for key, parse in RUNTIME.items():
        try:
            parse(table[key])
        except (KeyError, ValueError, IndexError):
            wrong[key] = table.get(key)
    levels = {key: value for key, value in table.items() if key.startswith("scheduleMessageOffset")}
    return wrong | {key: value for key, value in levels.items() if not _TWO_OFFSETS.fullmatch(value)}


async def runtime(peer: Peer) -> dict[str, str]:
    answer = await peer.ask(RequestCode.GET_BROKER_RUNTIME_INFO)
    return dict(decode_body(answer.require_success(), KVTable).table)


async def use(peer: Peer) -> None:
    """Let each of the statistics count something."""
    await peer.create_topic()
    await peer.heartbeat()
    await peer.fill(2)
    await peer.pull(0)
    header = ConsumerSendMsgBackRequestHeader(0, "G", 0)
    (await peer.ask(RequestCode.CONSUMER_SEND_MSG_BACK, header)).require_success()


def test_rocketmq_returns_the_same_keys() -> None:
    """So that no key stands here that only RewindMQ has."""
    frames, _ = golden()
    tables = [
        decode_body(frame.decoded(), KVTable).table
        for frame in frames
        if frame.code == RequestCode.GET_BROKER_RUNTIME_INFO
        and frame.outcome == 0
        and frame.recording.startswith("rocketmq-4")
    ]
    assert tables
    assert all(RUNTIME.keys() <= table.keys() for table in tables)


@pytest.mark.parametrize("profile", [Profile.V49, Profile.V53])
@simulated()
async def test_the_exporter_reads_every_key_of_28(stage: SimStage, profile: Profile) -> None:
    """Also before the first message, where RocketMQ's rates are empty and the exporter fails."""
    peer = stage.peer()
    assert unread(await runtime(peer)) == {}
    await use(peer)
    await stage.at(70.5)
    assert unread(await runtime(peer)) == {}


@simulated()
async def test_the_exporter_reads_every_statistic_of_315(stage: SimStage) -> None:
    peer = stage.peer()
    await use(peer)
    await stage.at(20.5)
    for name, key in STATISTICS:
        answer = await peer.ask(
            RequestCode.VIEW_BROKER_STATS_DATA, ViewBrokerStatsDataRequestHeader(name, key)
        )
        minute = decode_body(answer.require_success(), BrokerStatsData).stats_minute
        assert minute.sum > 0, name
        assert minute.tps > 0, name
