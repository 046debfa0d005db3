"""Which half messages are done: the op records, read in their order (docs/spec/broker.md B.14).

RocketMQ 4.9.4 and 5.3.3 ``TransactionalMessageServiceImpl#fillOpRemoveMap``. Both forms of a body are read
under every profile: one offset, or several with a comma behind each.
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
from rewindmq.protocol.names import TRANS_OP_HALF_TOPIC
from rewindmq.protocol.record import decode_records

# Read before others have a turn of the event loop.
_RECORDS_PER_READ: Final = 256

_log = logging.getLogger(__name__)


class OpQueue:
    """The op records from ``offset`` on.

    Attributes:
        next_offset: of the first record not read.
    """

    def __init__(self, store: MessageStore, offset: int) -> None:
        self._store = store
        self.next_offset = offset
        # Half offset to op offset, of those that nobody took yet.
        self._done: dict[int, int] = {}

    @property
    def is_read(self) -> bool:
        """Whether every record there is was read."""
        return self.next_offset == self._store.max_offset(TRANS_OP_HALF_TOPIC, HALF_QUEUE)

    def read(self) -> None:
        """Read some more."""
        found = self._store.get_message(
            TRANS_OP_HALF_TOPIC, HALF_QUEUE, self.next_offset, _RECORDS_PER_READ, None
        )
        if found.status is GetMessageStatus.FOUND:
            for record in decode_records(found.body):
                for offset in _offsets_of(record):
                    self._done.setdefault(offset, record.queue_offset)
        else:
            _log.warning(
                "op record %d: %s, going on at %d",
                self.next_offset,
                found.status.name,
                found.next_begin_offset,
            )
        self.next_offset = found.next_begin_offset

    def take(self, half_offset: int) -> bool:
        """Whether the half message there is done; asked once."""
        return self._done.pop(half_offset, None) is not None

    def progress(self, half_offset: int) -> int:
        """Where to begin next time, when all half messages before ``half_offset`` are settled."""
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
            _log.error("op record %d holds %r, no offset", record.queue_offset, piece[:32])
