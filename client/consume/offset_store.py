"""Consume offsets as the client keeps them: in memory, and at the broker (docs/spec/client.md C.8).

Clients that know epochs keep one beside each offset and commit both; see ``docs/reset.md`` for the rules.
Clustering groups keep theirs at the broker; broadcasting members in a local file, see ``local_offset_store``.
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

# Told of a refused commit: the queue, the epoch it carried, and what the broker holds.
OnFenced = Callable[[MessageQueue, int, OffsetFencedResponseHeader], None]

_NONE_OWNED: Final[Mapping[MessageQueue, ProcessQueue]] = MappingProxyType({})

_log = logging.getLogger(__name__)


class OffsetMemory:
    """The in-memory half of both stores.

    Args:
        owners: the ProcessQueue registered for each queue now; the consumer keeps it up to date.
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
        self._cells_have_owners = instance.profile.offset_cell_per_queue_object
        self._table: dict[MessageQueue, int] = {}
        # As last told by the broker; outlives the offset, which is forgotten and read anew.
        self._epochs: dict[MessageQueue, int] = {}
        self._frozen: set[MessageQueue] = set()

    def update(
        self, queue: MessageQueue, offset: int, *, increase_only: bool, owner: ProcessQueue | None = None
    ) -> None:
        """Note progress. ``increase_only`` keeps a larger value; a frozen entry never changes.

        Args:
            owner: whose progress it is. Where cells belong to one queue object, that of any other than the
                registered one is ignored; a value of another epoch than the owner's is replaced.
        """
        table = self._table
        known = table.get(queue)
        if owner is not None:
            if self._cells_have_owners and self._owners.get(queue) is not owner:
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
        """The queue's epoch as last told, 0 before; None in clients that know no epochs."""
        return self._epochs.get(queue, 0) if self._instance.profile.knows_epochs else None

    def was_told_epoch(self, queue: MessageQueue) -> bool:
        """Whether the broker has told the queue's epoch at all."""
        return queue in self._epochs

    def learn_epoch(self, queue: MessageQueue, epoch: int) -> None:
        """Note what the broker told."""
        self._epochs[queue] = epoch

    def begin_again(self, queue: MessageQueue, offset: int, epoch: int) -> None:
        """Forget all progress of the queue in favour of what the broker told."""
        self.learn_epoch(queue, epoch)
        self._frozen.discard(queue)
        self._table[queue] = offset

    def update_and_freeze(self, queue: MessageQueue, offset: int) -> None:
        """Set a value that stays until ``remove`` (5.2.0, pull request 7635)."""
        self.update(queue, offset, increase_only=False)
        self._frozen.add(queue)

    def read_memory(self, queue: MessageQueue) -> int:
        """The offset in memory, or -1."""
        return self._table.get(queue, NO_OFFSET)

    def forget(self, queue: MessageQueue) -> None:
        """Drop the memory entry."""
        self._table.pop(queue, None)
        self._frozen.discard(queue)

    def offsets(self) -> dict[MessageQueue, int]:
        """A copy of the memory entries."""
        return dict(self._table)

    def details(self, queue: MessageQueue, offset: int, owner: ProcessQueue | None = None) -> dict[str, Any]:
        """What a probe is told about one queue's offset."""
        return queue_details(self._instance.client_id, self._group, queue, offset, owner)


class RemoteOffsetStore(OffsetMemory):
    """Offsets of a clustering group, stored at the brokers.

    Commits are oneway: a lost one is noticed by nobody, as in RocketMQ. Those with an epoch are answered;
    nobody waits for the answer, so that no dead broker holds anything up.

    Args:
        on_fenced: see ``OnFenced``; without it the offset in memory is forgotten, unless it is of a newer
            epoch.
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
        """Nothing: every queue is asked for when it is taken over."""

    def learn_epoch(self, queue: MessageQueue, epoch: int) -> None:
        """Note what the broker told. Progress of the epoch before is forgotten: it must not be committed
        under the new one."""
        if self._epochs.get(queue, epoch) != epoch:
            self.forget(queue)
        super().learn_epoch(queue, epoch)

    async def read(self, queue: MessageQueue) -> int:
        """The offset in memory, else the broker's, which is then in memory too; -1 when there is none.

        Raises:
            RewindMQError: the broker could not be asked, or (v53) refused for another reason than having
                no offset.
        """
        offset = self._table.get(queue, NO_OFFSET)
        return offset if offset >= 0 else await self.read_store(queue)

    async def read_store(self, queue: MessageQueue) -> int:
        """The broker's offset, see ``read``."""
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
        """Commit the memory entries of ``queues``, changed or not, and forget all others."""
        for queue in list(self._table):
            if queue in queues:
                await self.persist(queue)
            else:
                self.forget(queue)

    async def persist(self, queue: MessageQueue) -> None:
        """Commit one memory entry; errors are logged and swallowed."""
        offset = self._table.get(queue)
        if offset is None:
            return
        instance, epoch = self._instance, self.epoch(queue)
        probe, stall = instance.runtime.probe, instance.runtime.failpoint
        if probe is not None:
            probe(Point.COMMIT_READ, self._commit_details(queue, offset, epoch))
        if stall is not None:
            await stall(Point.COMMIT_READ, self._commit_details(queue, offset, epoch))
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
                held = answer.decode_header(OffsetFencedResponseHeader)
            except RewindMQError as error:
                _log_failure(queue, error)
                return
            self._fenced(queue, offset, epoch, held)

        api = self._instance.api
        api.commit(address, self._group, queue, offset, epoch).add_done_callback(on_answer)

    def _fenced(self, queue: MessageQueue, offset: int, epoch: int, held: OffsetFencedResponseHeader) -> None:
        """A reset has overtaken this commit; what the broker holds stays."""
        _log.warning(
            "commit of %d with epoch %d fenced, group %s, %s: the broker holds %d with epoch %d",
            offset,
            epoch,
            self._group,
            queue,
            held.offset,
            held.epoch,
        )
        if self._on_fenced is not None:
            self._on_fenced(queue, epoch, held)
        elif self.epoch(queue) == epoch:
            self.forget(queue)

    def _commit_details(self, queue: MessageQueue, offset: int, epoch: int | None) -> dict[str, Any]:
        details = self.details(queue, offset)
        if epoch is not None:
            details["epoch"] = epoch
        return details

    async def remove(self, queue: MessageQueue) -> None:
        """Forget one memory entry."""
        self.forget(queue)


def _log_failure(queue: MessageQueue, error: RewindMQError) -> None:
    _log.warning("updateConsumeOffsetToBroker exception, %s: %s", queue, error)
