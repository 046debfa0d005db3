"""Storing a consumer's progress, whichever request brought it (docs/spec/broker.md B.7, B.8)."""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

from rewindmq.broker.consumer_manager import ConsumerManager
from rewindmq.broker.fenced_commits import FencedCommits
from rewindmq.broker.fencing import Fencing
from rewindmq.broker.store.consumer_offset import ConsumerOffsetTable, OffsetRecord
from rewindmq.broker.store.errors import StoreError
from rewindmq.protocol.body.fenced_commit import FencedCommit
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.points import Point
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.runtime import Runtime

_log = logging.getLogger(__name__)


class Commit(NamedTuple):
    """What one request asks to be stored.

    Attributes:
        epoch: of the deliveries it stands for, None from a client that knows none.
        carrier: the request's code, 15 or 11.
    """

    connection: Connection
    group: str
    topic: str
    queue_id: int
    offset: int
    epoch: int | None
    carrier: RequestCode

    def details(self) -> dict[str, Any]:
        """For a probe."""
        return {
            "group": self.group,
            "topic": self.topic,
            "queue_id": self.queue_id,
            "offset": self.offset,
            "client": self.connection.remote_address,
            "carrier": int(self.carrier),
            "epoch": self.epoch,
        }


class OffsetCommitter:
    """RocketMQ 4.9.4 ``ConsumerOffsetManager#commitOffset``: a plain put, smaller values included.

    Unless a fenced reset has overtaken the deliveries it stands for: such a commit is listed, not stored.
    """

    def __init__(
        self,
        runtime: Runtime,
        offsets: ConsumerOffsetTable,
        fencing: Fencing,
        fenced: FencedCommits,
        consumers: ConsumerManager,
    ) -> None:
        self._now_ms = runtime.clock.now_ms
        self._probe = runtime.probe
        self._offsets = offsets
        self._fencing = fencing
        self._fenced = fenced
        self._consumers = consumers

    def commit(self, commit: Commit) -> OffsetRecord | None:
        """Store an offset; one that goes back is logged under RocketMQ's own mark.

        Returns:
            None when it is stored; what is stored instead when a reset has overtaken it.

        Raises:
            RequestError: 1, one offset too many.
        """
        connection, group, topic, queue_id, offset, epoch, _ = commit
        if epoch is not None or self._offsets.epoch(group, topic, queue_id):
            record = self._offsets.record(group, topic, queue_id)
            reason = self._fencing.refuse_commit(connection, (group, topic, queue_id), offset, epoch, record)
            if reason is not None:
                self._fence(commit, record, reason)
                return record
        try:
            stored = self._offsets.commit(group, topic, queue_id, offset)
        except StoreError as error:
            raise RequestError(ResponseCode.SYSTEM_ERROR, str(error)) from None
        if stored > offset:
            _log.warning(
                "[NOTIFYME]update consumer offset less than store. clientHost=%s, key=%s@%s, queueId=%d,"
                " requestOffset=%d, storeOffset=%d",
                connection.remote_address,
                topic,
                group,
                queue_id,
                offset,
                stored,
            )
        if self._probe is not None:
            self._probe(Point.COMMIT_RECEIVED, {**commit.details(), "stored": stored})
        return None

    def pass_over(self, commit: Commit) -> None:
        """A commit that a mark of a server reset swallows: neither stored nor listed.

        Specification: docs/spec/reset.md D.9.
        """
        if self._probe is not None:
            record = self._offsets.record(commit.group, commit.topic, commit.queue_id)
            self._tell_fenced(commit, record, "a server reset waits for a pull")

    def _fence(self, commit: Commit, record: OffsetRecord, reason: str) -> None:
        connection, group, topic, queue_id, offset, epoch, carrier = commit
        client = connection.remote_address
        _log.warning(
            "commit of %d for %s@%s, queue %d, from %s not stored: %s; stored is %d",
            offset,
            topic,
            group,
            queue_id,
            client,
            reason,
            record.offset,
        )
        info = self._consumers.find(group)
        channel = info.channels.get(connection) if info is not None else None
        self._fenced.add(
            FencedCommit(
                at=self._now_ms(),
                client=client,
                group=group,
                topic=topic,
                queue_id=queue_id,
                offset=offset,
                stored_offset=record.offset,
                stored_epoch=record.epoch,
                carrier=int(carrier),
                client_id=channel.client_id if channel is not None else "",
                epoch=epoch,
                reason=reason,
            )
        )
        self._tell_fenced(commit, record, reason)

    def _tell_fenced(self, commit: Commit, record: OffsetRecord, reason: str) -> None:
        if self._probe is not None:
            fate = {"stored": record.offset, "stored_epoch": record.epoch, "reason": reason}
            self._probe(Point.COMMIT_FENCED, {**commit.details(), **fate})
