"""clusterList: list the brokers and their load."""

from __future__ import annotations

import argparse
import logging
from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, Any, Final

from rewindmq.client.admin.commands.command import Command, Printed
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.remoting.process.options import positive_int

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient

_MS_PER_HOUR: Final = 3_600_000
_log = logging.getLogger(__name__)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-m",
        "--moreStats",
        action="store_true",
        help="show instead how many messages came in and went out yesterday and today",
    )
    parser.add_argument(
        "-i", "--interval", type=positive_int, metavar="SECONDS", help="repeat until interrupted"
    )


async def _execute(admin: AdminClient, arguments: argparse.Namespace) -> AsyncGenerator[Printed]:
    yield await _list(admin, arguments.moreStats)
    while arguments.interval is not None:
        await admin.runtime.timers.sleep(arguments.interval)
        yield await _list(admin, arguments.moreStats)


async def _list(admin: AdminClient, more_stats: bool) -> Printed:
    info = await admin.brokers.examine_broker_cluster_info()
    lines = [_MORE_HEADER if more_stats else _HEADER]
    data = []
    for cluster, names in sorted(info.cluster_addr_table.items()):
        for name in sorted(names):
            broker = info.broker_addr_table.get(name)
            if broker is None:
                continue
            for broker_id, address in sorted(broker.broker_addrs.items()):
                stats = await _stats(admin, address)
                if more_stats:
                    totals = _totals(stats)
                    lines.append(_more_row(cluster, name, *totals.values()))
                else:
                    now_ms = admin.runtime.clock.now_ms()
                    lines.append(_load_row(cluster, name, broker_id, address, stats, now_ms))
                data.append(
                    {
                        "cluster": cluster,
                        "brokerName": name,
                        "brokerId": broker_id,
                        "address": address,
                        **(totals if more_stats else {"runtime": dict(stats)}),
                    }
                )
    return Printed(lines, data)


async def _stats(admin: AdminClient, address: str) -> Mapping[str, str]:
    """Return the broker's runtime statistics, or {} without an answer, so that the list goes on."""
    try:
        return await admin.brokers.fetch_broker_runtime_stats(address)
    except RewindMQError as error:
        _log.warning("broker at %s: %s", address, error)
        return {}


def _load_row(
    cluster: str, name: str, broker_id: int, address: str, stats: Mapping[str, str], now_ms: int
) -> str:
    # -1 means an empty commit log. This command prints 0 hours then, mqadmin the hours since 1970.
    earliest = _number(stats.get("earliestMessageTimeStamp", "-1"))
    hours = (now_ms - earliest) / _MS_PER_HOUR if earliest >= 0 else 0.0
    return _row(
        cluster,
        name,
        broker_id,
        address,
        stats.get("brokerVersionDesc", ""),
        _load(stats, "putTps", "send"),
        _load(stats, "getTransferedTps", "pull"),
        stats.get("pageCacheLockTimeMills", ""),
        f"{hours:2.2f}",
        f"{_number(stats.get('commitLogDiskRatio', '')):.4f}",
    )


def _load(stats: Mapping[str, str], rate: str, pool: str) -> str:
    per_second = _number(stats.get(rate, "").partition(" ")[0])
    size = stats.get(f"{pool}ThreadPoolQueueSize", "")
    wait = stats.get(f"{pool}ThreadPoolQueueHeadWaitTimeMills", "")
    return f"{per_second:9.2f}({size},{wait}ms)"


def _totals(stats: Mapping[str, str]) -> dict[str, int]:
    def messages(kind: str, end: str, start: str) -> int:
        return int(
            _number(stats.get(f"{kind}Total{end}", "")) - _number(stats.get(f"{kind}Total{start}", ""))
        )

    return {
        "inTotalYest": messages("msgPut", "TodayMorning", "YesterdayMorning"),
        "outTotalYest": messages("msgGet", "TodayMorning", "YesterdayMorning"),
        "inTotalToday": messages("msgPut", "TodayNow", "TodayMorning"),
        "outTotalToday": messages("msgGet", "TodayNow", "TodayMorning"),
    }


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _row(*columns: Any) -> str:
    cluster, name, broker_id, address, version, puts, gets, wait, hours, space = columns
    return (
        f"{cluster:<16}  {name:<22}  {broker_id!s:<4}  {address:<22} {version:<16} "
        f"{puts:>19} {gets:>19} {wait:>10} {hours:>5} {space:>6}"
    )


def _more_row(cluster: str, name: str, *totals: object) -> str:
    return f"{cluster:<16}  {name:<32} " + " ".join(f"{total!s:>14}" for total in totals)


_HEADER: Final = _row(
    "#Cluster Name",
    "#Broker Name",
    "#BID",
    "#Addr",
    "#Version",
    "#InTPS(LOAD)",
    "#OutTPS(LOAD)",
    "#PCWait(ms)",
    "#Hour",
    "#SPACE",
)
_MORE_HEADER: Final = _more_row(
    "#Cluster Name", "#Broker Name", "#InTotalYest", "#OutTotalYest", "#InTotalToday", "#OutTotalToday"
)

COMMAND: Final = Command("clusterList", "List the brokers and their load.", "-i 5", _add_arguments, _execute)
