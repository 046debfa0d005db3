"""Offset stores: the client's consume offsets, in memory and at the broker (docs/spec/client.md C.8).

Clients that know epochs keep an epoch beside each offset and commit both; ``docs/reset.md`` has the rules.
Clustering consumers store offsets at the broker, broadcasting consumers in a file (``local_offset_store``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any, Final

from rewindmq.client.consume.probe_details import queue_details
from rewindmq.client.consume.process_queue import ProcessQueue
from rewindmq.client.core.instance import ClientInstance
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import ResponseError, RewindMQError
from rewindmq.protocol.header.offset import OffsetFencedResponseHeader
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.points import Point

NO_OFFSET = -1

# Called for a refused commit, with the queue, the commit's epoch, and the broker's offset and epoch.
OnFenced = Callable[[MessageQueue, int, OffsetFencedResponseHeader], None]

_NONE_OWNED: Final[Mapping[MessageQueue, ProcessQueue]] = MappingProxyType({})

_log = logging.getLogger(__name__)


class OffsetMemory:
    """The in-memory part of both offset stores.

    Args:
        owners: the ProcessQueue that is registered for each queue; the consumer keeps it up to date.
    """

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        owners: Mapping[MessageQueue, ProcessQueue] = _NONE_OWNED,
    ) -> None:
        self._instance = instance
        self._group = group
        self._owners = owners
        self._requires_registered_owner = instance.profile.offset_cell_per_queue_object
        self._table: dict[MessageQueue, int] = {}
        # The epochs of the broker's last responses. They stay when an offset is removed and read again.
        self._epochs: dict[MessageQueue, int] = {}
        self._frozen: set[MessageQueue] = set()

    def update(
        self, queue: MessageQueue, offset: int, *, increase_only: bool, owner: ProcessQueue | None = None
    ) -> None:
        """Set an offset. ``increase_only`` keeps a larger value; a frozen entry never changes.

        Args:
            owner: the ProcessQueue whose progress this is. With the profile's
                ``offset_cell_per_queue_object``, only the registered ProcessQueue has an effect. If its
                epoch is not that of the stored offset, the stored offset is replaced in any case.
        """
        table = self._table
        known = table.get(queue)
        if owner is not None:
            if self._requires_registered_owner and self._owners.get(queue) is not owner:
                return
            if owner.epoch is not None and owner.epoch != self._epochs.get(queue, 0):
                self._epochs[queue] = owner.epoch
                known = None
        if known is not None and ((increase_only and known >= offset) or queue in self._frozen):
            return
        table[queue] = offset
        probe = self._instance.runtime.probe
        if probe is not None:
            probe(Point.OFFSET_UPDATED, self.details(queue, offset, owner))

    def epoch(self, queue: MessageQueue) -> int | None:
        """Return the epoch of the queue's last response, or 0; None if the client uses no epochs."""
        return self._epochs.get(queue, 0) if self._instance.profile.knows_epochs else None

    def has_epoch(self, queue: MessageQueue) -> bool:
        """True if a response has contained the queue's epoch."""
        return queue in self._epochs

    def learn_epoch(self, queue: MessageQueue, epoch: int) -> None:
        """Store the epoch of a response."""
        self._epochs[queue] = epoch

    def begin_again(self, queue: MessageQueue, offset: int, epoch: int) -> None:
        """Replace the queue's progress with the broker's offset and epoch."""
        self.learn_epoch(queue, epoch)
        self._frozen.discard(queue)
        self._table[queue] = offset

    def update_and_freeze(self, queue: MessageQueue, offset: int) -> None:
        """Set an offset that stays until ``remove`` (5.2.0, pull request 7635)."""
        self.update(queue, offset, increase_only=False)
        self._frozen.add(queue)

    def read_memory(self, queue: MessageQueue) -> int:
        """Return the offset in memory, or -1."""
        return self._table.get(queue, NO_OFFSET)

    def forget(self, queue: MessageQueue) -> None:
        """Remove the offset from memory."""
        self._table.pop(queue, None)
        self._frozen.discard(queue)

    def offsets(self) -> dict[MessageQueue, int]:
        """Return a copy of the offsets in memory."""
        return dict(self._table)

    def details(self, queue: MessageQueue, offset: int, owner: ProcessQueue | None = None) -> dict[str, Any]:
        """Return the probe details of one queue's offset."""
        return queue_details(self._instance.client_id, self._group, queue, offset, owner)


class RemoteOffsetStore(OffsetMemory):
    """Offsets of a clustering group, stored at the brokers.

    Commits are oneway, so the client does not notice a lost commit, as in RocketMQ. A commit with an epoch
    has a response; the client does not wait for it, so a dead broker cannot block the client.

    Args:
        on_fenced: see ``OnFenced``. If None, a refused offset is removed from memory, unless memory already
            has a newer epoch.
    """

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        owners: Mapping[MessageQueue, ProcessQueue] = _NONE_OWNED,
        on_fenced: OnFenced | None = None,
    ) -> None:
        super().__init__(instance, group, owners)
        self._on_fenced = on_fenced

    async def load(self) -> None:
        """Do nothing: the offset of each queue is read when it is assigned."""

    def learn_epoch(self, queue: MessageQueue, epoch: int) -> None:
        """Store the epoch of a response.

        Progress of an earlier epoch is removed, because it must not be committed under the new one.
        """
        if self._epochs.get(queue, epoch) != epoch:
            self.forget(queue)
        super().learn_epoch(queue, epoch)

    async def read(self, queue: MessageQueue) -> int:
        """Return the offset from memory, else from the broker (and keep it); -1 if there is none.

        Raises:
            RewindMQError: the broker did not respond, or (v53) returned any error except QUERY_NOT_FOUND
                (22).
        """
        offset = self._table.get(queue, NO_OFFSET)
        return offset if offset >= 0 else await self.read_store(queue)

    async def read_store(self, queue: MessageQueue) -> int:
        """Return the broker's offset; see ``read``."""
        instance = self._instance
        address = await instance.offset_address(queue)
        try:
            stored = await instance.api.consumer_offset(address, self._group, queue)
        except ResponseError as error:
            if error.code == ResponseCode.QUERY_NOT_FOUND or instance.profile.any_error_means_no_offset:
                self._epochs.pop(queue, None)
                return NO_OFFSET
            raise
        self._epochs[queue] = stored.epoch or 0
        self.update(queue, stored.offset, increase_only=False)
        return stored.offset

    async def persist_all(self, queues: Collection[MessageQueue]) -> None:
        """Commit the offsets of ``queues``, changed or not, and remove all others from memory."""
        for queue in list(self._table):
            if queue in queues:
                await self.persist(queue)
            else:
                self.forget(queue)

    async def persist(self, queue: MessageQueue) -> None:
        """Commit one offset from memory; errors are logged."""
        offset = self._table.get(queue)
        if offset is None:
            return
        instance, epoch = self._instance, self.epoch(queue)
        probe, failpoint = instance.runtime.probe, instance.runtime.failpoint
        if probe is not None:
            probe(Point.COMMIT_READ, self._commit_details(queue, offset, epoch))
        if failpoint is not None:
            await failpoint(Point.COMMIT_READ, self._commit_details(queue, offset, epoch))
        try:
            address = await instance.offset_address(queue)
            if probe is not None:
                probe(Point.COMMIT_SENT, self._commit_details(queue, offset, epoch))
            if epoch is None:
                await instance.api.update_consumer_offset(address, self._group, queue, offset)
            else:
                self._commit(address, queue, offset, epoch)
        except RewindMQError as error:
            _log_failure(queue, error)

    def _commit(self, address: str, queue: MessageQueue, offset: int, epoch: int) -> None:
        def on_answer(future: asyncio.Future[RemotingCommand]) -> None:
            if future.cancelled():
                return
            try:
                answer = future.result()
                if answer.code != ResponseCode.OFFSET_FENCED:
                    answer.require_success()
                    return
                stored = answer.decode_header(OffsetFencedResponseHeader)
            except RewindMQError as error:
                _log_failure(queue, error)
                return
            self._fenced(queue, offset, epoch, stored)

        api = self._instance.api
        api.commit(address, self._group, queue, offset, epoch).add_done_callback(on_answer)

    def _fenced(
        self, queue: MessageQueue, offset: int, epoch: int, stored: OffsetFencedResponseHeader
    ) -> None:
        """Handle a commit that the broker refused because of a reset; the broker's offset stays."""
        _log.warning(
            "commit of %d with epoch %d fenced, group %s, %s: the broker has %d with epoch %d",
            offset,
            epoch,
            self._group,
            queue,
            stored.offset,
            stored.epoch,
        )
        if self._on_fenced is not None:
            self._on_fenced(queue, epoch, stored)
        elif self.epoch(queue) == epoch:
            self.forget(queue)

    def _commit_details(self, queue: MessageQueue, offset: int, epoch: int | None) -> dict[str, Any]:
        details = self.details(queue, offset)
        if epoch is not None:
            details["epoch"] = epoch
        return details

    async def remove(self, queue: MessageQueue) -> None:
        """Remove one offset from memory."""
        self.forget(queue)


def _log_failure(queue: MessageQueue, error: RewindMQError) -> None:
    _log.warning("updateConsumeOffsetToBroker exception, %s: %s", queue, error)
