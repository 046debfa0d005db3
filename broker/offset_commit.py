"""Storing a consumer's progress, whichever request brought it (``behaviour.md`` B.7, B.8)."""

from __future__ import annotations

import logging

from rewindmq.broker.store.consumer_offset import ConsumerOffsetTable
from rewindmq.broker.store.errors import StoreError
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.points import Point, Probe

_log = logging.getLogger(__name__)


class OffsetCommitter:
    """RocketMQ 4.9.4 ``ConsumerOffsetManager#commitOffset``: a plain put, smaller values included."""

    def __init__(self, offsets: ConsumerOffsetTable, probe: Probe | None) -> None:
        self._offsets = offsets
        self._probe = probe

    def commit(self, client: str, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Store an offset; one that goes back is logged under RocketMQ's own mark.

        Args:
            client: who commits, ``host:port``, for the log.

        Raises:
            RequestError: 1, one offset too many.
        """
        try:
            stored = self._offsets.commit(group, topic, queue_id, offset)
        except StoreError as error:
            raise RequestError(ResponseCode.SYSTEM_ERROR, str(error)) from None
        if stored > offset:
            _log.warning(
                "[NOTIFYME]update consumer offset less than store. clientHost=%s, key=%s@%s, queueId=%d,"
                " requestOffset=%d, storeOffset=%d",
                client,
                topic,
                group,
                queue_id,
                offset,
                stored,
            )
        if self._probe is not None:
            self._probe(
                Point.COMMIT_RECEIVED,
                {"group": group, "topic": topic, "queue_id": queue_id, "offset": offset, "stored": stored},
            )
