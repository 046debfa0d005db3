"""Redirects pulls after a reset: to the mark of a server-side reset, or by the epoch of a fenced one."""

from __future__ import annotations

from typing import NamedTuple

from rewindmq.broker.clients.consumer_manager import ConsumerManager
from rewindmq.broker.offsets.fencing import Fencing
from rewindmq.broker.offsets.reset_offset_table import ResetOffsetTable
from rewindmq.broker.pull.reset_notifier import ResetNotifier
from rewindmq.broker.store.tables.consumer_offset import ConsumerOffsetTable
from rewindmq.protocol.body.heartbeat import MessageModel
from rewindmq.protocol.header.pull import PullMessageRequestHeader
from rewindmq.protocol.remoting.connection import Connection


class Redirect(NamedTuple):
    """The offset to which a pull is redirected.

    Attributes:
        epoch: the queue's epoch; 0 if it was never reset in fenced mode.
        is_mark: True if the pull consumed a mark.
    """

    offset: int
    epoch: int
    is_mark: bool


class ResetRedirector:
    """Decides whether to redirect a pull, when the pull arrives and again when it wakes."""

    def __init__(
        self,
        offsets: ConsumerOffsetTable,
        reset_offsets: ResetOffsetTable,
        fencing: Fencing,
        notifier: ResetNotifier,
        consumers: ConsumerManager,
    ) -> None:
        self._offsets = offsets
        self._reset_offsets = reset_offsets
        self._fencing = fencing
        self._notifier = notifier
        self._consumers = consumers

    def epoch(self, header: PullMessageRequestHeader) -> int:
        """Return the queue's epoch, for the response."""
        return self._offsets.epoch(header.consumer_group, header.topic, header.queue_id)

    def redirect(
        self, connection: Connection, header: PullMessageRequestHeader, epoch: int
    ) -> Redirect | None:
        """Return the redirect of a pull; None if it may read.

        Args:
            epoch: the queue's epoch.
        """
        if not epoch and header.epoch is None and not self._reset_offsets:
            return None
        queue = header.consumer_group, header.topic, header.queue_id
        if header.epoch is not None:
            self._notifier.on_pull(connection, queue)
        target = self._reset_offsets.collect(*queue)
        if target is not None:
            return Redirect(target, epoch, is_mark=True)
        if (epoch or header.epoch is not None) and not self._is_broadcasting(header.consumer_group):
            record = self._offsets.record(*queue)
            if not self._fencing.admits_pull(connection, queue, header.queue_offset, header.epoch, record):
                return Redirect(record.offset, epoch, is_mark=False)
        return None

    def _is_broadcasting(self, group: str) -> bool:
        """Return True if the group is broadcasting; its consumers store their offsets themselves."""
        online = self._consumers.find(group)
        return online is not None and online.message_model is MessageModel.BROADCASTING

    def on_delivery(
        self,
        connection: Connection,
        header: PullMessageRequestHeader,
        epoch: int,
        next_offset: int,
        moved: bool,
    ) -> None:
        """Record the response to a pull that was not redirected.

        Args:
            epoch: the queue's epoch.
            moved: True if the pull's offset was out of range (21).
        """
        if epoch and header.epoch is None:
            queue = header.consumer_group, header.topic, header.queue_id
            self._fencing.on_delivery(connection, queue, next_offset, epoch, moved=moved)
