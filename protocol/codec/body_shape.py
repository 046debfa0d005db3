"""Converts the shapes that peers send to the shape of a typed body, before msgspec validates it.

Peers write the same body differently: null for absent, other field names, and tables keyed by message queues
as objects, texts, arrays or lists of pairs (docs/spec/protocol.md 5.5). Each body type has a repair function,
derived once from its annotations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final

import msgspec
from msgspec import inspect

from rewindmq.protocol.body import RemotingBody
from rewindmq.protocol.codec import fastjson
from rewindmq.protocol.errors import BodyError
from rewindmq.protocol.message_queue import MessageQueue

# An object with the fields of a queue has seven values and commas.
_QUEUE_VALUES: Final = 32
_MIN_INT32: Final = -(2**31)
_MAX_INT32: Final = 2**31 - 1

Repair = Callable[[Any], Any]


@cache
def repair_for(body_type: type[RemotingBody]) -> Repair:
    """Return the repair function of a body type. It does not change unknown shapes; msgspec refuses them."""
    repair = _repair_of(inspect.type_info(body_type))
    assert repair is not None, "bodies always have one"
    return repair


def _repair_of(info: inspect.Type) -> Repair | None:
    if isinstance(info, inspect.StructType):
        members = {field.encode_name: _repair_of(field.type) for field in info.fields}
        assert issubclass(info.cls, RemotingBody)
        return _struct_repair(members, info.cls.aliases)
    if isinstance(info, inspect.NamedTupleType):
        return _to_queue
    if isinstance(info, inspect.DictType):
        is_queue_table = isinstance(info.key_type, inspect.NamedTupleType)
        value = _repair_of(info.value_type)
        return _queue_table_repair(value) if is_queue_table else value and _map_repair(value)
    if isinstance(info, (inspect.ListType, inspect.SetType)):
        item = _repair_of(info.item_type)
        return item and _sequence_repair(item)
    if isinstance(info, inspect.UnionType):
        return next((repair for part in info.types if (repair := _repair_of(part))), None)
    return None


def _struct_repair(members: Mapping[str, Repair | None], aliases: Mapping[str, str]) -> Repair:
    # msgspec ignores unknown fields by itself.
    is_flat = not aliases and not any(members.values())

    def repair(value: Any) -> Any:
        if type(value) is not dict or (is_flat and None not in value.values()):
            return value
        repaired = {}
        for name, member in value.items():
            if member is None:
                continue
            if name in aliases:
                if aliases[name] in value:
                    continue
                name = aliases[name]
            mend = members.get(name)
            try:
                repaired[name] = member if mend is None else mend(member)
            except BodyError as error:
                raise BodyError(f"{error.remark} in {name}") from None
        return repaired

    return repair


def _map_repair(mend: Repair) -> Repair:
    def repair(value: Any) -> Any:
        return {key: mend(member) for key, member in value.items()} if type(value) is dict else value

    return repair


def _sequence_repair(mend: Repair) -> Repair:
    def repair(value: Any) -> Any:
        return [mend(member) for member in value] if isinstance(value, (list, tuple)) else value

    return repair


def _queue_table_repair(mend: Repair | None) -> Repair:
    def repair(value: Any) -> Any:
        pairs: Iterable[Any]
        if type(value) is dict:
            pairs = value.items()
        elif isinstance(value, (list, tuple)) and all(_is_pair(entry) for entry in value):
            pairs = value
        else:
            return value
        return {_to_queue(key): member if mend is None else mend(member) for key, member in pairs}

    return repair


def _is_pair(entry: Any) -> bool:
    return isinstance(entry, (list, tuple)) and len(entry) == 2


def _to_queue(value: Any) -> MessageQueue:
    """Parse a message queue: an object, the text of an object, or ``[topic, brokerName, queueId]``.

    Raises:
        BodyError: none of them. It ends the decoding, because each wrong queue takes some microseconds.
    """
    if isinstance(value, str):
        value = fastjson.loads(value, _QUEUE_VALUES)
    if type(value) is dict:
        topic, broker_name, queue_id = value.get("topic"), value.get("brokerName"), value.get("queueId")
        # The usual case: a conversion for each queue takes longer than the rest of decoding a table.
        if (
            type(topic) is str
            and type(broker_name) is str
            and type(queue_id) is int
            and _MIN_INT32 <= queue_id <= _MAX_INT32
        ):
            return MessageQueue(topic, broker_name, queue_id)
        value = (topic, broker_name, queue_id)
    try:
        return msgspec.convert(value, MessageQueue, strict=False)
    except msgspec.ValidationError as error:
        raise BodyError(f"not a message queue: {error}") from None
