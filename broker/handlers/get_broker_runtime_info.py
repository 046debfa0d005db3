"""28 GET_BROKER_RUNTIME_INFO: counters and rates, as clusterList and brokerStatus read them.

Kept from 4.9.4 ``AdminBrokerProcessor#getBrokerRuntimeInfo``: the keys the tools read (``wire.md`` 5.9),
under both spellings of getTransferedTps. Changed: there are no thread pools, so queue sizes and waiting
times are 0. Refused: nothing.
"""

from __future__ import annotations

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.body.kv import KVTable
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.version import CURRENT_VERSION, version_name


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    stats, store = context.stats, context.store
    now_ms = context.runtime.clock.now_ms()
    puts, gets = stats.put_at_midnight, stats.get_at_midnight
    disk_ratio = f"{store.disk_used_ratio():.2f}"
    get_tps = stats.get_tps()
    table: dict[str, object] = {
        "brokerVersionDesc": version_name(CURRENT_VERSION),
        "brokerVersion": CURRENT_VERSION,
        "bootTimestamp": stats.boot_timestamp,
        "runtime": _duration(now_ms - stats.boot_timestamp),
        "putTps": stats.put_tps(),
        "getTransferedTps": get_tps,
        "getTransferredTps": get_tps,
        "msgPutTotalYesterdayMorning": puts[0],
        "msgPutTotalTodayMorning": puts[1],
        "msgPutTotalTodayNow": stats.put_total,
        "msgGetTotalYesterdayMorning": gets[0],
        "msgGetTotalTodayMorning": gets[1],
        "msgGetTotalTodayNow": stats.get_total,
        "sendThreadPoolQueueSize": 0,
        "pullThreadPoolQueueSize": 0,
        "sendThreadPoolQueueHeadWaitTimeMills": 0,
        "pullThreadPoolQueueHeadWaitTimeMills": 0,
        "pageCacheLockTimeMills": 0,
        "commitLogMinOffset": store.min_commit_log_offset,
        "commitLogMaxOffset": store.max_commit_log_offset,
        "dispatchBehindBytes": 0,
        "earliestMessageTimeStamp": store.earliest_store_time,
        "commitLogDiskRatio": disk_ratio,
        "consumeQueueDiskRatio": disk_ratio,
    }
    return RemotingCommand(
        ResponseCode.SUCCESS, body=KVTable({key: str(value) for key, value in table.items()})
    )


def _duration(milliseconds: int) -> str:
    """As ``StoreStatsService#getFormatRuntime`` words it."""
    seconds = milliseconds // 1_000
    days, hours, minutes = seconds // 86_400, seconds // 3_600 % 24, seconds // 60 % 60
    return f"[ {days} days, {hours} hours, {minutes} minutes, {seconds % 60} seconds ]"
