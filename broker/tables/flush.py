"""Writes topics.json, subscriptionGroup.json and messageRequestMode.json soon after each change.

The files are written on a worker thread.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Sequence
from functools import partial
from typing import Any

from rewindmq.broker.store.errors import StoreError
from rewindmq.broker.tables.config_table import ConfigTable, TableContent
from rewindmq.protocol.body.registration import DataVersion
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.remoting.runtime import Workers

_log = logging.getLogger(__name__)

_Taken = Sequence[tuple[ConfigTable[Any], TableContent[Any]]]


class TableFlush:
    """The only writer of these tables while the broker runs.

    The changes made during one write share the next write. RocketMQ 4.9.4 (``ConfigManager#persist``)
    writes the whole table once for each change, and reports success even if the disk fails.

    Args:
        tables: their ``on_unsaved`` calls ``begin``.
    """

    def __init__(self, workers: Workers, tables: Iterable[ConfigTable[Any]]) -> None:
        self._workers = workers
        self._tables = tuple(tables)
        self._writing: asyncio.Future[dict[ConfigTable[Any], StoreError]] | None = None
        # Callers of ``saved``: those that wait for the running write, and those that wait for the next one.
        self._waiting: list[asyncio.Future[None]] = []
        self._later: list[asyncio.Future[None]] = []

    @property
    def is_saved(self) -> bool:
        """Whether every change is on disk."""
        return self._writing is None and not self._is_changed

    @property
    def _is_changed(self) -> bool:
        return any(table.is_changed for table in self._tables)

    def begin(self) -> None:
        """Write the changed tables; if a write is running, another write follows it."""
        if self._writing is not None or not self._is_changed:
            return
        taken = [(table, content) for table in self._tables if (content := table.take()) is not None]
        self._waiting, self._later = self._later, []
        self._writing = asyncio.ensure_future(self._workers.run(_save, taken))
        self._writing.add_done_callback(partial(self._written, taken))

    @property
    def versions(self) -> tuple[DataVersion, ...]:
        """The tables' versions, to compare by identity."""
        return tuple(table.data_version for table in self._tables)

    def has_changed(self, before: tuple[DataVersion, ...]) -> bool:
        """Return True if a table differs from the one of these ``versions`` and is not on disk yet."""
        is_unchanged = all(old is new for old, new in zip(before, self.versions, strict=True))
        return not is_unchanged and not self.is_saved

    def answer(
        self, response: RemotingCommand, before: tuple[DataVersion, ...]
    ) -> RemotingCommand | Coroutine[Any, Any, RemotingCommand]:
        """Return the response to a request: at once if it changed nothing, else when its change is on disk.

        A failing disk therefore does not delay a request that changes nothing.

        If the disk fails, the response code becomes SYSTEM_ERROR (1). The change still takes effect, as in
        RocketMQ; it is written when the disk works again.

        Args:
            before: ``versions`` before the request was served.
        """
        return self._answer_saved(response) if self.has_changed(before) else response

    async def _answer_saved(self, response: RemotingCommand) -> RemotingCommand:
        await self.saved()
        return response

    async def saved(self) -> None:
        """Wait until every change up to now is on disk.

        Raises:
            RequestError: SYSTEM_ERROR (1): the disk failed; the next write tries again.
        """
        if self.is_saved:
            return
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # The running write is enough if nothing has changed since it began.
        (self._later if self._is_changed else self._waiting).append(done)
        self.begin()
        try:
            await done
        except StoreError as error:
            raise RequestError(ResponseCode.SYSTEM_ERROR, str(error)) from None

    async def close(self) -> None:
        """Wait for the running write and the one after it."""
        while self._writing is not None:
            await asyncio.wait((self._writing,))

    def _written(self, taken: _Taken, writing: asyncio.Future[dict[ConfigTable[Any], StoreError]]) -> None:
        self._writing = None
        refusals = writing.result()
        for table, content in taken:
            table.settle(content, is_written=table not in refusals)
        waiting, self._waiting = self._waiting, []
        refusal = next(iter(refusals.values()), None)
        if refusal is not None:
            _log.error("topics and groups not saved, trying again: %s", refusal)
        for done in waiting:
            if done.done():
                continue
            if refusal is None:
                done.set_result(None)
            else:
                done.set_exception(refusal)
        # After a disk error, retry at once only if a request waits; otherwise retry with the next tick.
        if refusal is None or self._later:
            self.begin()


def _save(taken: _Taken) -> dict[ConfigTable[Any], StoreError]:
    """Write each table; return the tables that failed. Runs on a worker thread."""
    refusals = {}
    for table, content in taken:
        try:
            table.save(content)
        except StoreError as error:
            refusals[table] = error
        except Exception as error:
            # A bug, not a disk error. Fail the waiting requests too, and let the next write try again.
            _log.exception("a table cannot be written")
            refusals[table] = StoreError(f"cannot save the table: {error}")
    return refusals
