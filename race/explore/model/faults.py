"""Deliberate faults in the fencing. They show that the search finds such mistakes.

Each fault replaces attributes of the real classes, and only in the processes of an exploration.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from rewindmq.broker.offsets.committer import Commit, OffsetCommitter
from rewindmq.broker.offsets.fencing import Fencing
from rewindmq.broker.offsets.flush import OffsetFlush, ResetPlan
from rewindmq.broker.pull.reset_redirector import Redirect, ResetRedirector
from rewindmq.broker.store.tables import consumer_offset
from rewindmq.broker.store.tables.consumer_offset import ConsumerOffsetTable, OffsetChanges, OffsetRecord
from rewindmq.client.consume.offset_store import OffsetMemory
from rewindmq.client.consume.process_queue import ProcessQueue
from rewindmq.client.push.consume_concurrently import ConsumeConcurrentlyService
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.profile import Profile
from rewindmq.race.errors import RaceError


@dataclass(frozen=True, slots=True)
class PlantedFault:
    """One way to break the fencing.

    Attributes:
        title: what the broken code does, in one line.
        model: name of the model in which the search finds the fault.
        profile: profile of the consumers that the fault affects.
        enter: returns a context manager that replaces the code.
    """

    name: str
    title: str
    model: str
    enter: Callable[[], AbstractContextManager[None]]
    profile: Profile = Profile.EPOCH


@contextmanager
def _replaced(owner: Any, **attributes: Any) -> Iterator[None]:
    kept = {name: getattr(owner, name) for name in attributes}
    for name, value in attributes.items():
        setattr(owner, name, value)
    try:
        yield
    finally:
        for name, value in kept.items():
            setattr(owner, name, value)


def _epoch_not_flushed() -> AbstractContextManager[None]:
    def reset(self: OffsetFlush, plan: Callable[[], ResetPlan]) -> asyncio.Future[None]:
        made = plan()
        made.apply()
        self._offsets._unsaved[f"{made.topic}@{made.group}"] = None
        done = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    return _replaced(OffsetFlush, reset=reset)


def _commits_unchecked(carrier: RequestCode) -> AbstractContextManager[None]:
    real = OffsetCommitter.commit

    def commit(self: OffsetCommitter, commit: Commit) -> OffsetRecord | None:
        if commit.carrier == carrier:
            commit = commit._replace(epoch=self._offsets.epoch(commit.group, commit.topic, commit.queue_id))
        return real(self, commit)

    return _replaced(OffsetCommitter, commit=commit)


def _epochs_lost_at_restart() -> AbstractContextManager[None]:
    real = consumer_offset._read_document

    def read_document(document: Any) -> tuple[Any, ...]:
        offsets, _, *rest = real(document)
        return offsets, {}, *rest

    return _replaced(consumer_offset, _read_document=read_document)


def _second_reset_keeps_epoch() -> AbstractContextManager[None]:
    def next_epochs(self: ConsumerOffsetTable, key: str, targets: Mapping[int, int]) -> dict[int, int]:
        return dict.fromkeys(targets, 1)

    return _replaced(ConsumerOffsetTable, _next_epochs=next_epochs)


def _offset_not_saved_with_epoch() -> AbstractContextManager[None]:
    real = ConsumerOffsetTable.take_reset

    def take_reset(
        self: ConsumerOffsetTable, group: str, topic: str, targets: Mapping[int, int]
    ) -> OffsetChanges:
        stored = {queue_id: self.query(group, topic, queue_id) for queue_id in targets}
        return real(self, group, topic, stored)

    return _replaced(ConsumerOffsetTable, take_reset=take_reset)


def _client_keeps_offset() -> AbstractContextManager[None]:
    def begin_again(self: OffsetMemory, queue: MessageQueue, offset: int, epoch: int) -> None:
        self._epochs[queue] = epoch

    return _replaced(OffsetMemory, begin_again=begin_again)


@contextmanager
def _client_counts_old_results() -> Iterator[None]:
    real_init, real_update = ConsumeConcurrentlyService.__init__, OffsetMemory.update

    def init(self: ConsumeConcurrentlyService, *args: Any, **options: Any) -> None:
        real_init(self, *args, **options)
        self._checks_dropped = False

    def update(
        self: OffsetMemory, queue: MessageQueue, offset: int, *, increase_only: bool, owner: Any = None
    ) -> None:
        real_update(self, queue, offset, increase_only=increase_only)

    with (
        _replaced(ConsumeConcurrentlyService, __init__=init),
        _replaced(OffsetMemory, update=update),
        _replaced(ProcessQueue, clear=lambda self: None),
    ):
        yield


def _missing_epoch_accepted() -> AbstractContextManager[None]:
    real = Fencing.refuse_commit

    def refuse_commit(
        self: Fencing, connection: Any, queue: Any, offset: int, epoch: Any, record: Any
    ) -> Any:
        return None if epoch is None else real(self, connection, queue, offset, epoch, record)

    return _replaced(Fencing, refuse_commit=refuse_commit)


def _joined_by_any_pull() -> AbstractContextManager[None]:
    real = Fencing.admits_pull

    def admits_pull(self: Fencing, connection: Any, queue: Any, offset: int, epoch: Any, record: Any) -> bool:
        if epoch is None:
            self.on_query(connection, queue, record._replace(offset=offset))
        return real(self, connection, queue, offset, epoch, record)

    return _replaced(Fencing, admits_pull=admits_pull)


def _redirected_to_old_offset() -> AbstractContextManager[None]:
    real = ResetRedirector.redirect

    def redirect(self: ResetRedirector, connection: Any, header: Any, epoch: int) -> Redirect | None:
        redirected = real(self, connection, header, epoch)
        return redirected and redirected._replace(offset=header.queue_offset)

    return _replaced(ResetRedirector, redirect=redirect)


def _epoch_raised_without_offset() -> AbstractContextManager[None]:
    real = ConsumerOffsetTable.reset

    def reset(
        self: ConsumerOffsetTable, group: str, topic: str, targets: Mapping[int, int]
    ) -> dict[int, int]:
        return real(
            self, group, topic, {queue_id: self.query(group, topic, queue_id) for queue_id in targets}
        )

    return _replaced(ConsumerOffsetTable, reset=reset)


_FAULTS: Final = (
    PlantedFault(
        "flush",
        "INVOKE_BROKER_TO_RESET_OFFSET (222) returns before the epoch is on disk",
        "crash-broker",
        _epoch_not_flushed,
    ),
    PlantedFault(
        "commit",
        "the broker does not check the epoch of UPDATE_CONSUMER_OFFSET (15)",
        "one-reset",
        lambda: _commits_unchecked(RequestCode.UPDATE_CONSUMER_OFFSET),
    ),
    PlantedFault(
        "pull-commit",
        "the broker does not check the epoch of an offset that a pull commits",
        "one-reset",
        lambda: _commits_unchecked(RequestCode.PULL_MESSAGE),
    ),
    PlantedFault(
        "restart", "a broker forgets the epochs when it restarts", "crash-broker", _epochs_lost_at_restart
    ),
    PlantedFault(
        "second", "a second reset does not raise the epoch", "two-resets", _second_reset_keeps_epoch
    ),
    PlantedFault(
        "file",
        "the broker saves the new epoch with the old offset",
        "crash-broker",
        _offset_not_saved_with_epoch,
    ),
    PlantedFault(
        "offset",
        "a reset raises the epoch but does not move the offset",
        "one-reset",
        _epoch_raised_without_offset,
    ),
    PlantedFault(
        "redirect",
        "the broker redirects a pull of an old epoch to the offset that it asked for",
        "one-reset",
        _redirected_to_old_offset,
    ),
    PlantedFault(
        "memory",
        "a consumer that learns of a new epoch keeps its old offset",
        "one-reset",
        _client_keeps_offset,
    ),
    PlantedFault(
        "results",
        "a consumer counts results from before the reset under the new epoch",
        "one-reset",
        _client_counts_old_results,
    ),
    PlantedFault(
        "missing",
        "the broker accepts a commit without an epoch",
        "one-reset",
        _missing_epoch_accepted,
        profile=Profile.V49,
    ),
    PlantedFault(
        "joined",
        "the broker treats every pull without an epoch as sent after the reset",
        "one-reset",
        _joined_by_any_pull,
        profile=Profile.V49,
    ),
)
FAULTS: Final[Mapping[str, PlantedFault]] = MappingProxyType({fault.name: fault for fault in _FAULTS})


def find_fault(name: str) -> PlantedFault:
    """Return the fault with this name.

    Raises:
        RaceError: no fault has this name; the text lists the names.
    """
    if name not in FAULTS:
        raise RaceError(f"no such fault: {name!r} (known: {', '.join(FAULTS)})")
    return FAULTS[name]
