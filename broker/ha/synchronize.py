"""Copies the master's tables to a slave (4.9.4 ``SlaveSynchronize``).

The master's topics and groups replace the slave's if their data version differs. The master's offsets are
merged into the slave's. The progress of the delay levels and of the timer messages goes to the files that a
master reads at its start.
Changed: under v53 the master's offsets replace the slave's, because they go with a deleted topic or group.
Epochs of fenced resets come with the offsets. Entries that this broker would refuse from a client are not
copied. The progress of timer messages is copied with the other tables; RocketMQ copies it every 3 s.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection
from typing import Final, TypeVar

from rewindmq.broker.ha.checked_tables import (
    checked_delay_offsets,
    checked_groups,
    checked_offsets,
    checked_topics,
)
from rewindmq.broker.offsets.delay_offsets import DelayOffsets
from rewindmq.broker.store.store import MessageStore
from rewindmq.broker.store.tables.consumer_offset import ConsumerOffsetTable
from rewindmq.broker.tables.subscription_group import SubscriptionGroupManager
from rewindmq.broker.tables.topic_config import TopicConfigManager
from rewindmq.protocol.body import RemotingBody
from rewindmq.protocol.body.group import SubscriptionGroupWrapper
from rewindmq.protocol.body.kv import KVTable
from rewindmq.protocol.body.offset_table import ConsumerOffsetSerializeWrapper, DelayOffsetSerializeWrapper
from rewindmq.protocol.body.registration import DataVersion, TopicConfigSerializeWrapper
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import BodyError, RewindMQError
from rewindmq.protocol.remoting.client import RemotingClient
from rewindmq.protocol.remoting.runtime import Timers, Workers
from rewindmq.protocol.remoting.slices.run import run_slices

_log = logging.getLogger(__name__)
B = TypeVar("B", bound=RemotingBody)

_TIMEOUT_SECONDS: Final = 3.0
# Of a master's invalid entries, the log names this many, each with this many characters.
_SHOWN_KEYS: Final = 5
_SHOWN_CHARACTERS: Final = 80


class SlaveSynchronize:
    """Reads the master's tables and stores them in this broker's.

    Args:
        removes_offsets: remove offsets that the master does not have.
        save_timer_progress: saves the body of GET_TIMER_CHECK_POINT (60), on a worker thread; None in
            releases without timer messages.

    Attributes:
        master_address: the master's address, None if no name server knows a master.
    """

    def __init__(
        self,
        client: RemotingClient,
        workers: Workers,
        own_address: str,
        store: MessageStore,
        timers: Timers,
        topics: TopicConfigManager,
        groups: SubscriptionGroupManager,
        offsets: ConsumerOffsetTable,
        delay_offsets: DelayOffsets,
        *,
        removes_offsets: bool = False,
        save_timer_progress: Callable[[bytes], None] | None = None,
    ) -> None:
        self._client = client
        self._workers = workers
        self._own_address = own_address
        self._store = store
        self._timers = timers
        self._topics = topics
        # The topics when queues of deleted topics were last closed.
        self._closed_for: DataVersion | None = None
        self._groups = groups
        self._offsets = offsets
        self._delay_offsets = delay_offsets
        self._removes_offsets = removes_offsets
        self.master_address: str | None = None
        self._save_timer_progress = save_timer_progress
        # Tables whose last copy failed, so that each failure is logged once.
        self._failing: set[str] = set()
        # The invalid entries of each table that were logged.
        self._refused: dict[str, str] = {}

    async def copy_all(self) -> None:
        """Copy all tables; a failure of one does not affect the others."""
        address = self.master_address
        if address is None or address == self._own_address:
            return
        steps: tuple[tuple[str, Callable[[str], Awaitable[None]]], ...] = (
            ("topics", self._copy_topics),
            ("consumer offsets", self._copy_offsets),
            ("delay offsets", self._copy_delay_offsets),
            ("timer progress", self._copy_timer_progress),
            ("groups", self._copy_groups),
        )
        for what, step in steps:
            try:
                await step(address)
            except Exception as error:
                if what not in self._failing:
                    unexpected = None if isinstance(error, RewindMQError | OSError) else error
                    _log.error(
                        "can not copy %s of master %s, will try again: %s",
                        *(what, address, error),
                        exc_info=unexpected,
                    )
                self._failing.add(what)
            else:
                self._failing.discard(what)

    async def master_log_end(self) -> int | None:
        """Return the end of the master's log, or None if the response does not have it.

        Raises:
            RewindMQError: if the master does not respond.
        """
        address = self.master_address
        if address is None:
            return None
        table = (await self._ask(address, RequestCode.GET_BROKER_RUNTIME_INFO, KVTable)).table
        end = table.get("commitLogMaxOffset", "")
        return int(end) if end.isdigit() else None

    async def _ask(self, address: str, code: RequestCode, body: type[B]) -> B:
        """Return a table of the master. A worker decodes it, because it may have 16 MiB."""
        response = await self._client.invoke(address, RemotingCommand(code), _TIMEOUT_SECONDS)
        return await self._workers.run(decode_body, response.require_success(), body)

    async def _copy_topics(self, address: str) -> None:
        wrapper = await self._ask(address, RequestCode.GET_ALL_TOPIC_CONFIG, TopicConfigSerializeWrapper)
        topics = await self._workers.run(checked_topics, wrapper)
        self._note_refused("topics", wrapper.topic_config_table.keys() - topics.topic_config_table.keys())
        self._topics.take_over(topics)
        if self._topics.data_version is not self._closed_for:
            self._closed_for = self._topics.data_version
            # Not deleted: a message of a topic that was made again may be here before the topic.
            await run_slices(self._timers, self._store.cleaner.close_unused_queues(self._topics.names))
        # Of topics whose end has arrived with the log.
        cleaner = self._store.cleaner
        if cleaner.has_former:
            await self._workers.run(cleaner.delete_former_files)
            await run_slices(self._timers, cleaner.delete_former())

    async def _copy_offsets(self, address: str) -> None:
        code = RequestCode.GET_ALL_CONSUMER_OFFSET
        wrapper = await self._ask(address, code, ConsumerOffsetSerializeWrapper)
        offsets, refused = await self._workers.run(_check_offsets, wrapper)
        self._note_refused("consumer offsets", refused)
        epochs = wrapper.epoch_table or {}
        self._offsets.take_over(offsets, epochs, removes=self._removes_offsets)

    async def _copy_delay_offsets(self, address: str) -> None:
        wrapper = await self._ask(address, RequestCode.GET_ALL_DELAY_OFFSET, DelayOffsetSerializeWrapper)
        table = checked_delay_offsets(wrapper.offset_table)
        self._note_refused("delay offsets", wrapper.offset_table.keys() - table.keys())
        if table != self._delay_offsets.table:
            self._delay_offsets.table = table
            await self._workers.run(self._delay_offsets.save, dict(table))

    async def _copy_timer_progress(self, address: str) -> None:
        if self._save_timer_progress is None:
            return
        request = RemotingCommand(RequestCode.GET_TIMER_CHECK_POINT)
        response = await self._client.invoke(address, request, _TIMEOUT_SECONDS)
        body = response.require_success().body
        if not isinstance(body, bytes):
            raise BodyError("the response has no timer progress")
        await self._workers.run(self._save_timer_progress, body)

    async def _copy_groups(self, address: str) -> None:
        code = RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG
        wrapper = await self._ask(address, code, SubscriptionGroupWrapper)
        groups = await self._workers.run(checked_groups, wrapper)
        refused = wrapper.subscription_group_table.keys() - groups.subscription_group_table.keys()
        self._note_refused("groups", refused)
        self._groups.take_over(groups)

    def _note_refused(self, what: str, keys: Collection[object]) -> None:
        """Log the refused entries of a table, when there are others than at the last copy."""
        shown = ", ".join(sorted(repr(key)[:_SHOWN_CHARACTERS] for key in keys)[:_SHOWN_KEYS])
        if shown != self._refused.get(what, ""):
            self._refused[what] = shown
            if shown:
                _log.error("the master's %s have %d invalid entries, not copied: %s", what, len(keys), shown)


def _check_offsets(
    wrapper: ConsumerOffsetSerializeWrapper,
) -> tuple[dict[str, dict[int, int]], list[str]]:
    """Return the valid offsets, and the keys with others; runs on a worker thread."""
    offsets = checked_offsets(wrapper.offset_table)
    return offsets, [key for key, queues in wrapper.offset_table.items() if queues != offsets.get(key)]
