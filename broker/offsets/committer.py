"""Stores commits of consumer offsets: UPDATE_CONSUMER_OFFSET (15), or part of a PULL_MESSAGE (11).

Specification: docs/spec/broker.md B.7, B.8.
"""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

from rewindmq.broker.clients.consumer_manager import ConsumerManager
from rewindmq.broker.limits import MAX_NEW_OFFSETS_PER_CONNECTION
from rewindmq.broker.offsets.fencing import FencedCommits, Fencing
from rewindmq.broker.offsets.rewinds import Rewinds
from rewindmq.broker.shares import Shares
from rewindmq.broker.store.errors import StoreError
from rewindmq.broker.store.tables.consumer_offset import (
    MAX_OFFSETS,
    NO_OFFSET,
    ConsumerOffsetTable,
    OffsetRecord,
)
from rewindmq.protocol.body.fenced_commit import FencedCommit
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.points import Point
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.runtime import Runtime

_log = logging.getLogger(__name__)


class Commit(NamedTuple):
    """One commit as requested.

    Attributes:
        epoch: the epoch of the committed deliveries; None from a client that is not epoch-aware.
        carrier: the request's code, UPDATE_CONSUMER_OFFSET (15) or PULL_MESSAGE (11).
    """

    connection: Connection
    group: str
    topic: str
    queue_id: int
    offset: int
    epoch: int | None
    carrier: RequestCode

    def details(self) -> dict[str, Any]:
        """Return the details for a probe."""
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
    """Stores a commit unless it is fenced (RocketMQ 4.9.4 ``ConsumerOffsetManager#commitOffset``).

    As in RocketMQ, a commit may move the offset back. The broker does not store a commit from before a fenced
    reset; it adds the commit to the list of refused commits (LIST_FENCED_COMMITS).

    Attributes:
        new_offsets: the offsets that each open connection has added to the table.
    """

    def __init__(
        self,
        runtime: Runtime,
        offsets: ConsumerOffsetTable,
        fencing: Fencing,
        fenced: FencedCommits,
        consumers: ConsumerManager,
        rewinds: Rewinds,
    ) -> None:
        self._clock = runtime.clock
        self._probe = runtime.probe
        self._offsets = offsets
        self._fencing = fencing
        self._fenced = fenced
        self._consumers = consumers
        self._rewinds = rewinds
        self.new_offsets = Shares("new consumer offsets", MAX_NEW_OFFSETS_PER_CONNECTION, MAX_OFFSETS)

    def commit(self, commit: Commit) -> OffsetRecord | None:
        """Store an offset; log a commit that moves it back with RocketMQ's tag ``[NOTIFYME]``.

        Returns:
            None if the commit is stored; the stored record if the commit is fenced.

        Raises:
            RequestError: SYSTEM_ERROR (1), the table is full, or the connection has added too many offsets.
        """
        connection, group, topic, queue_id, offset, epoch, _ = commit
        if epoch is not None or self._offsets.epoch(group, topic, queue_id):
            record = self._offsets.record(group, topic, queue_id)
            reason = self._fencing.refuse_commit(connection, (group, topic, queue_id), offset, epoch, record)
            if reason is not None:
                self._fence(commit, record, reason)
                return record
        stored = self._offsets.update(group, topic, queue_id, offset)
        if stored is None:
            stored = NO_OFFSET
            self._add(commit)
        else:
            self._note(connection.remote_address, group, topic, queue_id, offset, stored)
        if self._probe is not None:
            self._probe(Point.COMMIT_RECEIVED, {**commit.details(), "stored": stored})
        return None

    def commit_again(self, client: str, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Do as ``commit`` for a queue that has an offset and no epoch, without a probe.

        Args:
            client: the committing client, ``host:port``.
        """
        stored = self._offsets.update(group, topic, queue_id, offset)
        if stored is not None:
            self._note(client, group, topic, queue_id, offset, stored)

    def commit_popped(
        self, connection: Connection, group: str, topic: str, queue_id: int, offset: int
    ) -> None:
        """Store the offset to which a POP has moved its group; the broker commits it, so no epoch fences it.

        Raises:
            RequestError: as ``commit``.
        """
        stored = self._offsets.update(group, topic, queue_id, offset)
        if stored is not None and self._probe is None:
            self._note(connection.remote_address, group, topic, queue_id, offset, stored)
            return
        commit = Commit(connection, group, topic, queue_id, offset, None, RequestCode.POP_MESSAGE)
        if stored is None:
            stored = NO_OFFSET
            self._add(commit)
        else:
            self._note(connection.remote_address, group, topic, queue_id, offset, stored)
        if self._probe is not None:
            self._probe(Point.COMMIT_RECEIVED, {**commit.details(), "stored": stored})

    def _note(self, client: str, group: str, topic: str, queue_id: int, offset: int, stored: int) -> None:
        rewinds = self._rewinds
        if stored > offset:
            _warn_lower(client, group, topic, queue_id, offset, stored)
        if stored > offset or rewinds.open or rewinds.awaited:
            rewinds.on_commit(group, topic, queue_id, offset, stored)

    def _add(self, commit: Commit) -> None:
        """Store the first offset of a queue, if the connection may add one."""
        connection, group, topic, queue_id, offset, _, _ = commit
        if not self.new_offsets.has_share(connection):
            self.new_offsets.check(connection)
        try:
            self._offsets.commit(group, topic, queue_id, offset)
        except StoreError as error:
            raise RequestError(ResponseCode.SYSTEM_ERROR, str(error)) from None
        self.new_offsets.add(connection)

    def ignore(self, commit: Commit) -> None:
        """Ignore a commit because the queue has the mark of a server-side reset; report it to the probe.

        Specification: docs/spec/reset.md D.9.
        """
        if self._probe is not None:
            record = self._offsets.record(commit.group, commit.topic, commit.queue_id)
            self._probe_fenced(commit, record, "a server reset waits for a pull")

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
                at=self._clock.now_ms(),
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
        self._probe_fenced(commit, record, reason)

    def _probe_fenced(self, commit: Commit, record: OffsetRecord, reason: str) -> None:
        if self._probe is not None:
            fate = {"stored": record.offset, "stored_epoch": record.epoch, "reason": reason}
            self._probe(Point.COMMIT_FENCED, {**commit.details(), **fate})


def _warn_lower(client: str, group: str, topic: str, queue_id: int, offset: int, stored: int) -> None:
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
