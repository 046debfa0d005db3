"""Reads the op records, which say which half messages are done (docs/spec/broker.md B.14).

Source: RocketMQ 4.9.4 and 5.3.3 ``TransactionalMessageServiceImpl#fillOpRemoveMap``. Every profile reads both
forms of a body: one offset, or several with a comma after each.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final

from rewindmq.broker.store.model import GetMessageStatus
from rewindmq.broker.store.store import MessageStore
from rewindmq.broker.transaction.half import HALF_QUEUE
from rewindmq.broker.transaction.records import REMOVE_TAG
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message.record import decode_records
from rewindmq.protocol.names import TRANS_OP_HALF_TOPIC

# Op records read in one turn of the event loop.
_RECORDS_PER_READ: Final = 256

_log = logging.getLogger(__name__)


class OpQueue:
    """The op records from ``offset`` on.

    Attributes:
        next_offset: offset of the first unread record.
    """

    def __init__(self, store: MessageStore, offset: int) -> None:
        self._store = store
        self.next_offset = offset
        # Half offset to op offset, of the records that ``take`` has not removed.
        self._done: dict[int, int] = {}

    @property
    def is_read(self) -> bool:
        """Return True if all op records are read."""
        return self.next_offset == self._store.max_offset(TRANS_OP_HALF_TOPIC, HALF_QUEUE)

    def read(self) -> None:
        """Read the next op records."""
        found = self._store.get_message(
            TRANS_OP_HALF_TOPIC, HALF_QUEUE, self.next_offset, _RECORDS_PER_READ, None
        )
        if found.status is GetMessageStatus.FOUND:
            for record in decode_records(found.body):
                for offset in _offsets_of(record):
                    self._done.setdefault(offset, record.queue_offset)
        else:
            _log.warning(
                "op record %d: %s, continuing at %d",
                self.next_offset,
                found.status.name,
                found.next_begin_offset,
            )
        self.next_offset = found.next_begin_offset

    def take(self, half_offset: int) -> bool:
        """Return True if the half message at that offset is done; the next call returns False."""
        return self._done.pop(half_offset, None) is not None

    def progress(self, half_offset: int) -> int:
        """Return the op offset to start from when all half messages before ``half_offset`` are done."""
        return min(
            (op_offset for half, op_offset in self._done.items() if half >= half_offset),
            default=self.next_offset,
        )


def _offsets_of(record: MessageExt) -> Iterator[int]:
    if record.tags != REMOVE_TAG:
        _log.error("op record %d has the tag %r", record.queue_offset, record.tags)
        return
    for piece in record.stored_body.split(b","):
        if piece.isdigit() and len(piece) <= 19:
            yield int(piece)
        elif piece:
            _log.error("op record %d contains %r, which is not an offset", record.queue_offset, piece[:32])
