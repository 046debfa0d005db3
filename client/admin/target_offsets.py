"""Where the offsets of a reset come from: a file, or another group."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from rewindmq.client.admin.asking import ask_each
from rewindmq.protocol.command import DECODE_FAILURES
from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.message_queue import MessageQueue

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient

# 100,000 queues have about 6 MB.
MAX_BYTES: Final = 16 * 1024 * 1024
_FORM: Final = '{"topic": "…", "queues": [{"brokerName": "…", "queueId": 0, "offset": 0}]}'


class _Queue(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    broker_name: Annotated[str, msgspec.Meta(min_length=1)]
    queue_id: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
    offset: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    topic: str
    queues: Annotated[list[_Queue], msgspec.Meta(min_length=1)]


def read_offsets(data: bytes, topic: str) -> dict[MessageQueue, int]:
    """Decode a file of target offsets: ``{"topic": …, "queues": [{"brokerName", "queueId", "offset"}]}``.

    Raises:
        ClientError: the bytes are more than ``MAX_BYTES``, have another form, are for another topic, or name
            a queue twice.
    """
    if len(data) > MAX_BYTES:
        raise ClientError(f"a file of offsets has at most {MAX_BYTES} bytes: name fewer queues")
    try:
        file = msgspec.json.decode(data.removeprefix(BOM_UTF8), type=_File)
    except DECODE_FAILURES as error:
        raise ClientError(f"the file of offsets has another form ({error}): write {_FORM}") from None
    if file.topic != topic:
        raise ClientError(f"the offsets are of topic {file.topic!r}, not {topic!r}: correct the file or -t")
    return unique_offsets(
        (MessageQueue(topic, item.broker_name, item.queue_id), item.offset) for item in file.queues
    )


def unique_offsets(pairs: Iterable[tuple[MessageQueue, int]]) -> dict[MessageQueue, int]:
    """Return the offsets as a table.

    Raises:
        ClientError: a queue has two offsets.
    """
    offsets: dict[MessageQueue, int] = {}
    for queue, offset in pairs:
        if queue in offsets:
            raise ClientError(f"{queue.broker_name}:{queue.queue_id} is named twice: give it one offset")
        offsets[queue] = offset
    return offsets


async def offsets_of_group(admin: AdminClient, topic: str, group: str) -> dict[MessageQueue, int]:
    """Return another group's stored offsets in the topic.

    Raises:
        ClientError: the group has none.
        ResponseError, RemotingError: a broker refused, or did not answer.
    """
    known = sorted((await admin.groups.topic_consume_stats(group, topic, has_offsets=True)).offset_table)
    stored = await ask_each(known, partial(admin.groups.stored_offset, group))
    offsets = {queue: offset for queue, offset in zip(known, stored, strict=True) if offset is not None}
    if not offsets:
        raise ClientError(f"group {group} has no stored offset in topic {topic}: name another group")
    return offsets
