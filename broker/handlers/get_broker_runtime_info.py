"""GET_BROKER_RUNTIME_INFO (28): return counters and rates, for clusterList and brokerStatus.

Kept from 4.9.7 and 5.3.3 ``AdminBrokerProcessor#prepareRuntimeInfo``: every key of the release, in its
format (docs/statistics.md), with both spellings of getTransferedTps.
Added: what held the event loop longest since the start (``eventLoop...``), except in a simulation. A slave
adds haClientAddress: its end of the connection to its master's log, by which the master recognizes the slave.
The keys ``usage...`` are RewindMQ's own, see docs/limits.md.
Changed: this broker has no thread pools, so the sizes of their queues and the waiting times are 0, and the
capacities are RocketMQ's defaults. Rates cover less than their window until it has passed; RocketMQ leaves
them out. Times of puts exclude the waiting for disk and slaves. The broker always reports the earliest
message's time; 4.x reports it only if the log has more than 8 MiB.
Refused: nothing.
"""

from __future__ import annotations

import math
from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.ha.access import HA_CLIENT_ADDRESS
from rewindmq.broker.store.store import MessageStore
from rewindmq.broker.usage import usage
from rewindmq.protocol.body.kv import KVTable
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.names import SCHEDULE_TOPIC
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.version import CURRENT_VERSION, version_name

CODE: Final = RequestCode.GET_BROKER_RUNTIME_INFO

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
# RocketMQ's defaults. Alarms compare them with the sizes of the queues, which are always 0 here.
_CAPACITIES: Final = {
    "sendThreadPoolQueueCapacity": 10_000,
    "pullThreadPoolQueueCapacity": 100_000,
    "queryThreadPoolQueueCapacity": 20_000,
    "EndTransactionThreadPoolQueueCapacity": 100_000,
    # Without transientStorePoolEnable.
    "remainTransientStoreBufferNumbs": 0x7FFF_FFFF,
}
_QUEUES: Final = (
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
        **_schedule(context),
        **_CAPACITIES,
        **dict.fromkeys(_QUEUES, 0),
        **context.profile.runtime_extras,
    }
    if context.timers is not None:
        table |= context.timers.runtime_info()
    if context.profile.reports_active:
        table["brokerActive"] = "false" if context.config.is_slave else "true"
    if context.replication.slave is not None:
        table[HA_CLIENT_ADDRESS] = context.replication.slave.ha_client_address
    body = KVTable({key: str(table[key]) for key in sorted(table)})
    return RemotingCommand(ResponseCode.SUCCESS, body=body)


def _process(context: BrokerContext) -> dict[str, object]:
    running = context.runtime.clock.monotonic() - context.stats.boot_time
    return {
        "brokerVersionDesc": version_name(CURRENT_VERSION),
        "brokerVersion": CURRENT_VERSION,
        "bootTimestamp": context.stats.boot_timestamp,
        "runtime": _duration(round(1_000 * context.runtime.clock.scale * running)),
        "startAcceptSendRequestTimeStamp": 0,
    }


def _traffic(context: BrokerContext) -> dict[str, object]:
    stats = context.stats
    puts, gets, get_tps = stats.put_at_midnight, stats.get_at_midnight, stats.get_tps()
    puts_now, gets_now = stats.today()
    return {
        "putTps": stats.put_tps(),
        "getTransferedTps": get_tps,
        "getTransferredTps": get_tps,
        "getFoundTps": stats.found_tps(),
        "getMissTps": stats.missed_tps(),
        "getTotalTps": stats.looked_tps(),
        "msgPutTotalYesterdayMorning": puts[0],
        "msgPutTotalTodayMorning": puts[1],
        "msgPutTotalTodayNow": puts_now,
        "msgGetTotalYesterdayMorning": gets[0],
        "msgGetTotalTodayMorning": gets[1],
        "msgGetTotalTodayNow": gets_now,
        "putMessageTimesTotal": stats.put_total,
        "putMessageSizeTotal": stats.put_bytes,
        "putMessageFailedTimes": stats.put_failed,
        "putMessageAverageSize": stats.put_bytes / max(1, stats.put_total),
        "putMessageDistributeTime": stats.put_times.distribution(),
        "putMessageEntireTimeMax": stats.put_times.longest,
        "getMessageEntireTimeMax": stats.get_time_max,
        "putLatency99": f"{stats.put_times.percentile(0.99):.2f}",
        "putLatency999": f"{stats.put_times.percentile(0.999):.2f}",
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
        "commitLogDirCapacity": _capacity(store),
        "commitLogDiskRatio": disk_ratio,
        f"commitLogDiskRatio_{store.commit_log_folder}": disk_ratio,
        "consumeQueueDiskRatio": disk_ratio,
    }


def _schedule(context: BrokerContext) -> dict[str, object]:
    """Return the next offset and the maximum of each delay level that has delivered messages."""
    return {
        f"scheduleMessageOffset_{level}": f"{offset},{context.store.max_offset(SCHEDULE_TOPIC, level - 1)}"
        for level, offset in context.delays.offsets.table.items()
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
    """Return the used part of the disk, rounded up to per cent; -1.0 if it is unknown, as RocketMQ does."""
    try:
        percent = math.ceil(round(store.disk_used_ratio() * 100, 6))
    except OSError:
        return "-1.0"
    return str(percent / 100)


def _capacity(store: MessageStore) -> str:
    """Return the size of the disk and its free part; 0 bytes if they are unknown."""
    try:
        total, free = store.disk_capacity()
    except OSError:
        total, free = 0, 0
    return f"Total : {_size(total)}, Free : {_size(free)}."


def _size(count: int) -> str:
    """Return a number of bytes in the format of ``MixAll#humanReadableByteCount``."""
    power = (max(count, 1).bit_length() - 1) // 10
    return f"{count / 1_024**power:.1f} {_UNITS[power]}" if power else f"{count} B"


def _duration(milliseconds: int) -> str:
    """Return a duration in the format of ``StoreStatsService#getFormatRuntime``."""
    seconds = milliseconds // 1_000
    days, hours, minutes = seconds // 86_400, seconds // 3_600 % 24, seconds // 60 % 60
    return f"[ {days} days, {hours} hours, {minutes} minutes, {seconds % 60} seconds ]"
