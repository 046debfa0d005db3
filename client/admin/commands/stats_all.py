"""statsAll: show what comes into each topic, what its groups pull, and how far they are behind."""

from __future__ import annotations

import argparse
import logging
from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rewindmq.client.admin.commands.command import Command, Printed
from rewindmq.client.core.route import MASTER_ID
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import ResponseError, RewindMQError
from rewindmq.protocol.names import DLQ_GROUP_TOPIC_PREFIX, RETRY_GROUP_TOPIC_PREFIX

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient
    from rewindmq.protocol.body.stats import BrokerStatsData

_log = logging.getLogger(__name__)


class _Flow(NamedTuple):
    """Messages per second over the last minute, and messages of the last 24 hours."""

    tps: float
    day: int


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-a",
        "--activeTopic",
        action="store_true",
        help="leave out topics without traffic in the last 24 hours",
    )
    parser.add_argument(
        "-t", "--topic", help="only this topic (default: all, except retry and dead-letter topics)"
    )


async def _execute(admin: AdminClient, arguments: argparse.Namespace) -> AsyncGenerator[Printed]:
    heading = _row(
        "#Topic", "#Consumer Group", "#Accumulation", "#InTPS", "#OutTPS", "#InMsg24Hour", "#OutMsg24Hour"
    )
    if arguments.topic is not None:
        rows = await _topic(admin, arguments.topic.strip(), arguments.activeTopic)
        yield Printed([heading], None)
        for row in rows:
            yield row
        return
    yield Printed([heading], None)
    for topic in await admin.topics.fetch_all_topic_list():
        if topic.startswith((RETRY_GROUP_TOPIC_PREFIX, DLQ_GROUP_TOPIC_PREFIX)):
            continue
        try:
            rows = await _topic(admin, topic, arguments.activeTopic)
        except RewindMQError as error:
            _log.warning("topic %s: %s", topic, error)
            continue
        for row in rows:
            yield row


async def _topic(admin: AdminClient, topic: str, only_active: bool) -> list[Printed]:
    """Return a line for each group of a topic, or one without a group."""
    route = await admin.topics.examine_topic_route_info(topic)
    masters = [
        addresses[MASTER_ID]
        for broker in route.broker_datas
        if MASTER_ID in (addresses := broker.broker_addrs)
    ]
    groups = await admin.groups.query_topic_consume_by_who(topic)
    incoming = await _flow(admin, masters, "TOPIC_PUT_NUMS", topic)
    if not groups:
        return [] if only_active and not incoming.day else [_printed(topic, None, 0, incoming, None)]
    rows = []
    for group in groups:
        outgoing = await _flow(admin, masters, "GROUP_GET_NUMS", f"{topic}@{group}")
        if not only_active or incoming.day or outgoing.day:
            rows.append(_printed(topic, group, await _lag(admin, topic, group), incoming, outgoing))
    return rows


async def _flow(admin: AdminClient, masters: Sequence[str], name: str, key: str) -> _Flow:
    """Return one statistic of all masters together; one without it, or without an answer, adds nothing."""
    tps, day = 0.0, 0
    for address in masters:
        try:
            data = await admin.brokers.view_broker_stats_data(address, name, key)
        except RewindMQError as error:
            # A statistic exists after its key was counted once.
            if not (isinstance(error, ResponseError) and error.code == ResponseCode.SYSTEM_ERROR):
                _log.warning("%s of %s at %s: %s", name, key, address, error)
            continue
        tps += data.stats_minute.tps
        day += last_24_hours(data)
    return _Flow(tps, day)


def last_24_hours(data: BrokerStatsData) -> int:
    """Return the sum of the longest window with a figure: the day's first comes after an hour."""
    return data.stats_day.sum or data.stats_hour.sum or data.stats_minute.sum


async def _lag(admin: AdminClient, topic: str, group: str) -> int:
    try:
        return max(0, (await admin.groups.examine_consume_stats(group, topic)).total_diff())
    except RewindMQError as error:
        _log.warning("group %s in topic %s: %s", group, topic, error)
        return 0


def _printed(topic: str, group: str | None, lag: int, incoming: _Flow, outgoing: _Flow | None) -> Printed:
    line = _row(
        topic[:64],
        (group or "")[:64],
        lag,
        f"{incoming.tps:.2f}",
        f"{outgoing.tps:.2f}" if outgoing else "",
        incoming.day,
        outgoing.day if outgoing else "NO_CONSUMER",
    )
    data = {
        "topic": topic,
        "consumerGroup": group,
        "accumulation": lag,
        "inTps": incoming.tps,
        "outTps": outgoing.tps if outgoing else None,
        "inMsg24Hour": incoming.day,
        "outMsg24Hour": outgoing.day if outgoing else None,
    }
    return Printed([line], data)


def _row(*columns: Any) -> str:
    topic, group, lag, in_tps, out_tps, incoming, outgoing = columns
    return (
        f"{topic:<64}  {group:<64} {lag!s:>12} {in_tps:>11} {out_tps:>11} {incoming!s:>14} {outgoing!s:>14}"
    )


COMMAND: Final = Command(
    "statsAll",
    "Show rates and messages of the last 24 hours of topics and their groups.",
    "-a",
    _add_arguments,
    _execute,
)
