"""The text of ``config/consumerOrderInfo.json`` (docs/spec/store.md 8.8).

Source: RocketMQ 5.5.1 ``QueueLevelConsumerManager#encode``, whose fastjson 2 writes lists of numbers on one
line, integer keys bare on a line each, and sorts the fields of an object.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from rewindmq.broker.pop.orderly.hash_order import hash_order
from rewindmq.broker.pop.orderly.order_info_table import OrderKey
from rewindmq.broker.pop.orderly.queue_order import OrderInfo
from rewindmq.protocol.integers import Int32, Int64

_log = logging.getLogger(__name__)

_STRING: Final = msgspec.json.Encoder().encode
# ``acked`` is a long in the file.
_MAX_MESSAGES: Final = 63


class _Record(msgspec.Struct):
    """One queue in the file; RocketMQ omits fields that are null."""

    attempt_id: str | None = msgspec.field(name="a", default=None)
    acked: Int64 = msgspec.field(name="cm", default=0)
    invisible_time: Int64 | None = msgspec.field(name="i", default=None)
    last_consume_timestamp: Int64 = msgspec.field(name="l", default=0)
    distances: list[Int64] | None = msgspec.field(name="o", default=None)
    consumed_counts: dict[Int64, Int32] | None = msgspec.field(name="oc", default=None)
    next_visible_times: dict[Int64, Int64] | None = msgspec.field(name="ot", default=None)
    pop_time: Int64 = msgspec.field(name="popTime", default=0)


_Table = dict[str, dict[Int32, _Record]]


def parse(document: Any) -> dict[OrderKey, OrderInfo]:
    """Return the infos of a parsed file.

    Raises:
        msgspec.ValidationError, AttributeError: the document has another shape.
    """
    table = msgspec.convert(document.get("table") or {}, _Table, strict=False)
    infos: dict[OrderKey, OrderInfo] = {}
    for name, queues in table.items():
        for queue_id, record in queues.items():
            distances = record.distances or ()
            if len(distances) > _MAX_MESSAGES:
                _log.warning(
                    "order info of %s, queue %d, ignored: it has %d messages", name, queue_id, len(distances)
                )
                continue
            infos[name, queue_id] = OrderInfo(
                record.pop_time,
                record.invisible_time,
                tuple(distances),
                record.last_consume_timestamp,
                record.acked,
                record.attempt_id,
                record.next_visible_times,
                record.consumed_counts,
            )
    return infos


def text(infos: Mapping[OrderKey, OrderInfo]) -> str:
    """Return the file's text. Nothing else may change ``infos`` meanwhile."""
    groups: dict[str, list[tuple[int, OrderInfo]]] = {}
    for (name, queue_id), info in infos.items():
        groups.setdefault(name, []).append((queue_id, info))
    table = (
        (_quoted(name), _object(((str(queue_id), _info(info)) for queue_id, info in sorted(queues)), 3))
        for name, queues in groups.items()
    )
    return _object(
        (
            ('"orderInfoCount"', str(len(groups))),
            ('"orderedConsumptionLevel"', '"QUEUE"'),
            ('"table"', _object(table, 2)),
        ),
        1,
    )


def _info(info: OrderInfo) -> str:
    members: list[tuple[str, str | None]] = [
        ('"a"', None if info.attempt_id is None else _quoted(info.attempt_id)),
        ('"cm"', str(info.acked)),
        ('"i"', None if info.invisible_time is None else str(info.invisible_time)),
        ('"l"', str(info.last_consume_timestamp)),
        ('"o"', f"[{','.join(map(str, info.distances))}]"),
        ('"oc"', _numbers(info.consumed_counts)),
        ('"ot"', _numbers(info.next_visible_times)),
        ('"popTime"', str(info.pop_time)),
    ]
    return _object(((key, value) for key, value in members if value is not None), 4)


def _numbers(table: Mapping[int, int] | None) -> str | None:
    if table is None:
        return None
    return _object(((str(key), str(table[key])) for key in hash_order(table)), 5)


def _object(members: Iterable[tuple[str, str]], depth: int) -> str:
    line = "\n" + "\t" * depth
    lines = [f"{line}{key}:{value}" for key, value in members]
    return "{" + ",".join(lines) + (line[:-1] if lines else "") + "}"


def _quoted(value: str) -> str:
    return _STRING(value).decode()
