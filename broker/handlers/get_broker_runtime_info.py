"""GET_BROKER_RUNTIME_INFO (28): return counters and rates, for clusterList and brokerStatus.

Kept from 4.9.7 ``AdminBrokerProcessor#getBrokerRuntimeInfo``: the keys that the tools read
(docs/spec/protocol.md 5.9), with both spellings of getTransferedTps.
Added: what held the event loop longest since the start (``eventLoop...``), except in a simulation.
Changed: this broker has no thread pools, so queue sizes and waiting times are 0 and capacities are missing.
It does not measure latencies, so they are missing, too. It always reports the earliest message's time; 4.x
reports it only if the log has more than 8 MiB. A slave adds haClientAddress: its end of the connection to its
master's log, by which the master recognizes the slave. The keys ``usage...`` are RewindMQ's own, see
docs/limits.md.
Refused: nothing.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.ha.access import HA_CLIENT_ADDRESS
from rewindmq.broker.store.store import MessageStore
from rewindmq.broker.usage import usage
from rewindmq.protocol.body.kv import KVTable
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.version import CURRENT_VERSION, version_name

CODE: Final = RequestCode.GET_BROKER_RUNTIME_INFO

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_QUEUES = (
    "EndTransactionQueueSize",
    "pullThreadPoolQueueHeadWaitTimeMills",
    "pullThreadPoolQueueSize",
    "queryThreadPoolQueueHeadWaitTimeMills",
    "queryThreadPoolQueueSize",
    "sendThreadPoolQueueHeadWaitTimeMills",
    "sendThreadPoolQueueSize",
)


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    table = {
        **_process(context),
        **_traffic(context),
        **_store(context),
        **_event_loop(context),
        **usage(context),
        **dict.fromkeys((*_QUEUES, *context.profile.runtime_queues), 0),
    }
    if context.profile.reports_active:
        table["brokerActive"] = "false" if context.config.is_slave else "true"
    if context.slave is not None:
        table[HA_CLIENT_ADDRESS] = context.slave.ha_client_address
    body = KVTable({key: str(table[key]) for key in sorted(table)})
    return RemotingCommand(ResponseCode.SUCCESS, body=body)


def _process(context: BrokerContext) -> dict[str, object]:
    booted_ms = context.stats.boot_timestamp
    return {
        "brokerVersionDesc": version_name(CURRENT_VERSION),
        "brokerVersion": CURRENT_VERSION,
        "bootTimestamp": booted_ms,
        "runtime": _duration(context.runtime.clock.now_ms() - booted_ms),
        "startAcceptSendRequestTimeStamp": 0,
    }


def _traffic(context: BrokerContext) -> dict[str, object]:
    stats = context.stats
    puts, gets, get_tps = stats.put_at_midnight, stats.get_at_midnight, stats.get_tps()
    return {
        "putTps": stats.put_tps(),
        "getTransferedTps": get_tps,
        "getTransferredTps": get_tps,
        "getFoundTps": stats.found_tps(),
        "getMissTps": stats.missed_tps(),
        "getTotalTps": stats.looked_tps(),
        "msgPutTotalYesterdayMorning": puts[0],
        "msgPutTotalTodayMorning": puts[1],
        "msgPutTotalTodayNow": stats.put_total,
        "msgGetTotalYesterdayMorning": gets[0],
        "msgGetTotalTodayMorning": gets[1],
        "msgGetTotalTodayNow": stats.get_total,
        "putMessageTimesTotal": stats.put_total,
        "putMessageSizeTotal": stats.put_bytes,
        "putMessageAverageSize": stats.put_bytes / max(1, stats.put_total),
    }


def _store(context: BrokerContext) -> dict[str, object]:
    store = context.store
    disk_ratio = _disk_ratio(store)
    return {
        "commitLogMinOffset": store.min_commit_log_offset,
        "commitLogMaxOffset": store.max_commit_log_offset,
        "remainHowManyDataToFlush": _size(store.max_commit_log_offset - store.flushed_offset),
        "dispatchBehindBytes": 0,
        "dispatchMaxBuffer": 0,
        "pageCacheLockTimeMills": 0,
        "earliestMessageTimeStamp": store.earliest_store_time,
        "commitLogDiskRatio": disk_ratio,
        "consumeQueueDiskRatio": disk_ratio,
    }


def _event_loop(context: BrokerContext) -> dict[str, object]:
    stalls = context.runtime.stalls
    if stalls is None:
        return {}
    longest = stalls.longest
    return {
        "eventLoopStallCount": stalls.count,
        "eventLoopWorstStallMs": f"{longest.ms:.1f}" if longest else 0,
        "eventLoopWorstStallRequest": longest or "",
        "eventLoopWorstStallTimestamp": longest.at_ms if longest else 0,
    }


def _disk_ratio(store: MessageStore) -> str:
    """Return the used part of the disk; -1.00 if it is unknown, as RocketMQ does."""
    try:
        return f"{store.disk_used_ratio():.2f}"
    except OSError:
        return "-1.00"


def _size(count: int) -> str:
    """Return a number of bytes in the format of ``MixAll#humanReadableByteCount``."""
    power = (max(count, 1).bit_length() - 1) // 10
    return f"{count / 1_024**power:.1f} {_UNITS[power]}" if power else f"{count} B"


def _duration(milliseconds: int) -> str:
    """Return a duration in the format of ``StoreStatsService#getFormatRuntime``."""
    seconds = milliseconds // 1_000
    days, hours, minutes = seconds // 86_400, seconds // 3_600 % 24, seconds // 60 % 60
    return f"[ {days} days, {hours} hours, {minutes} minutes, {seconds % 60} seconds ]"
