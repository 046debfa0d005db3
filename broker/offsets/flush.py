"""Writes consumerOffset.json: every 5 s, for each fenced reset before it takes effect, and after a removal.

One write runs at a time, on a worker thread; resets and removals wait for it and run in the order of their
requests.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from rewindmq.broker.store.tables.consumer_offset import ConsumerOffsetTable, OffsetChanges
from rewindmq.protocol.points import Point, Probe
from rewindmq.protocol.remoting.runtime import Workers

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ResetPlan:
    """A fenced reset, computed when its turn has come.

    Attributes:
        targets: queue to offset, for the queues to reset; empty if there is nothing to write.
        apply: called when the targets are durable; it makes the reset effective.
    """

    group: str
    topic: str
    targets: dict[int, int]
    apply: Callable[[], None]


class _Write(NamedTuple):
    """A write that a caller waits for.

    Attributes:
        apply: called when the changes are durable.
        details: for the probe.
    """

    changes: OffsetChanges
    apply: Callable[[], None]
    details: dict[str, object]


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A caller that waits.

    Attributes:
        prepare: called in its turn; None: there is nothing to write.
    """

    prepare: Callable[[], _Write | None]
    done: asyncio.Future[None]


class OffsetFlush:
    """The only writer of consumerOffset.json while the broker runs."""

    def __init__(self, workers: Workers, offsets: ConsumerOffsetTable, probe: Probe | None) -> None:
        self._workers = workers
        self._offsets = offsets
        self._probe = probe
        self._waiting: deque[_Waiting] = deque()
        self._writing: asyncio.Future[None] | None = None

    def flush(self) -> None:
        """Write the offsets if they changed since the last write and no write is running."""
        if self._writing is None and (changes := self._offsets.take()) is not None:
            self._write(changes, self._flushed)

    def reset(self, plan: Callable[[], ResetPlan]) -> asyncio.Future[None]:
        """Write a reset, then apply it. A caller that stops waiting does not cancel the reset.

        Args:
            plan: called when the earlier writes have ended.

        Raises (through the future):
            StoreError: if the disk fails, or there are too many offsets; then nothing is reset.
        """
        return self._wait(partial(self._prepare_reset, plan))

    def saved(self, keys: Collection[str]) -> asyncio.Future[None]:
        """Write the present entries of these keys; done at once if they are on disk already.

        Raises (through the future):
            StoreError: the disk failed; the next write tries again.
        """
        return self._wait(partial(self._prepare_changes, keys))

    def _wait(self, prepare: Callable[[], _Write | None]) -> asyncio.Future[None]:
        waiting = _Waiting(prepare, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._next()
        return waiting.done

    async def close(self) -> None:
        """Wait for the running write and for the callers that wait."""
        while self._writing is not None:
            await asyncio.wait((self._writing,))

    def _next(self) -> None:
        while self._writing is None and self._waiting:
            waiting = self._waiting.popleft()
            try:
                write = waiting.prepare()
            except Exception as error:
                _settle(waiting.done, error)
                continue
            if write is None:
                _settle(waiting.done, None)
            else:
                self._write(write.changes, partial(self._waited_for, write, waiting.done))

    def _prepare_reset(self, plan: Callable[[], ResetPlan]) -> _Write | None:
        reset = plan()
        if not reset.targets:
            return None
        changes = self._offsets.take_reset(reset.group, reset.topic, reset.targets)
        return _Write(changes, reset.apply, {"group": reset.group, "topic": reset.topic})

    def _prepare_changes(self, keys: Collection[str]) -> _Write | None:
        changes = self._offsets.take(keys) if keys else None
        return None if changes is None else _Write(changes, _nothing, {})

    def _write(self, changes: OffsetChanges, then: Callable[[BaseException | None], None]) -> None:
        writing = asyncio.ensure_future(self._workers.run(self._offsets.save, changes))
        self._writing = writing
        writing.add_done_callback(partial(self._written, then))

    def _written(self, then: Callable[[BaseException | None], None], writing: asyncio.Future[None]) -> None:
        self._writing = None
        if not writing.cancelled():
            # Before ``_next``: the next copy of the table must include the reset that was written now.
            then(writing.exception())
        self._next()

    def _flushed(self, error: BaseException | None) -> None:
        if error is not None:
            _log.error("can not flush consumer offsets, will try again: %s", error)
            return
        if self._probe is not None:
            self._probe(Point.OFFSETS_FLUSHED, {})
        if self._offsets.has_more:
            self.flush()

    def _waited_for(self, write: _Write, done: asyncio.Future[None], error: BaseException | None) -> None:
        if error is None:
            if self._probe is not None:
                self._probe(Point.OFFSETS_FLUSHED, write.details)
            try:
                write.apply()
            except Exception as failure:
                error = failure
        _settle(done, error)


def _nothing() -> None:
    """A removal has taken effect before it is written."""


def _settle(done: asyncio.Future[None], error: BaseException | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)
