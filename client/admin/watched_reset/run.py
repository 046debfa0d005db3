"""A watched reset from its first sample to its verdict, with repairs."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rewindmq.client.admin.watched_reset.carry_out import carry_out
from rewindmq.client.admin.watched_reset.make_preview import queues_of
from rewindmq.client.admin.watched_reset.queue_watch import QueueWatch
from rewindmq.client.admin.watched_reset.repair import modes_of, repair
from rewindmq.client.admin.watched_reset.sample import Sample, take_sample
from rewindmq.client.admin.watched_reset.states import State
from rewindmq.client.admin.watched_reset.target import Target
from rewindmq.client.admin.watched_reset.watch import (
    PATIENCE,
    Change,
    Observer,
    ResetWatch,
    follow,
    ignore_sample,
)
from rewindmq.protocol.errors import ClientError, RewindMQError
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.reset_mode import ResetMode

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient

# Repairs of a reset unless the operator names another number, and at most.
TIMES: Final = 3
MAX_TIMES: Final = 100


@dataclass(frozen=True, slots=True)
class Began:
    """The brokers have accepted the reset.

    Attributes:
        at: monotonic protocol seconds at which the reset was sent.
        before: the sample right before the reset.
        queues: the queues that are watched; their states change during the watch.
        modes: broker name to the mode that it used, "write" if the client wrote the offsets.
    """

    at: float
    before: Sample
    queues: tuple[QueueWatch, ...]
    modes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Repair:
    """The ``number``-th repair, of these lost queues.

    Attributes:
        modes: broker name to the mode of the repair; empty if it failed.
        failure: why it failed; the queues stay lost.
    """

    number: int
    queues: tuple[MessageQueue, ...]
    modes: Mapping[str, str]
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The last states, after all repairs.

    Attributes:
        state: see ``common_state``.
        repairs: how often lost queues were reset again.
    """

    state: State
    queues: Sequence[QueueWatch]
    repairs: int


async def run_watched(
    admin: AdminClient,
    topic: str,
    group: str,
    target: Target,
    *,
    force: bool = True,
    mode: ResetMode | None = None,
    patience: float = PATIENCE,
    times: int = 0,
    observe: Observer = ignore_sample,
) -> AsyncGenerator[Began | Change | Repair | Verdict]:
    """Carry a reset out, watch it, and reset lost queues again; the last item is the verdict.

    Args:
        patience: seconds after each reset until a queue is unknown.
        times: repairs, 0 to ``MAX_TIMES``.
        observe: called after each sample, before the changes that it shows.

    Raises:
        ClientError: a broker does not tell the stored offsets, so nothing was reset; or see ``carry_out``.
        ResponseError, RemotingError: see ``carry_out``.
    """
    names = await queues_of(admin, topic)
    before = await _first_sample(admin, topic, group, names)
    began = admin.runtime.clock.monotonic()
    first = await carry_out(admin, topic, group, target, force=force, mode=mode)
    watch = ResetWatch(before, first.offsets, began)
    queues = {item.queue: item for item in watch.queues}
    yield Began(began, before, tuple(watch.queues), modes_of(first, first.offsets))
    repairs = 0
    while True:
        following = follow(admin, topic, group, watch, patience=patience, observe=observe)
        async with contextlib.aclosing(following) as changes:
            async for change in changes:
                yield change
        lost = {item.queue: item for item in watch.lost}
        if not lost or repairs >= times:
            break
        targets = {queue: item.target for queue, item in lost.items()}
        try:
            before = await _first_sample(admin, topic, group, list(lost))
            began = admin.runtime.clock.monotonic()
            modes = await repair(admin, topic, group, target, first, targets, force=force)
        except RewindMQError as error:
            yield Repair(repairs + 1, tuple(lost), {}, str(error))
            break
        repairs += 1
        yield Repair(repairs, tuple(lost), modes)
        # Messages up to the old offset of the first reset must come again.
        olds = {queue: item.old for queue, item in lost.items() if item.is_rewind}
        watch = ResetWatch(before, targets, began, olds)
        queues.update({item.queue: item for item in watch.queues})
    yield Verdict(common_state(item.state for item in queues.values()), tuple(queues.values()), repairs)


def common_state(states: Iterable[State]) -> State:
    """Return ``LOST`` if a queue is lost, ``PROVEN`` if all are proven and there is one, else ``UNKNOWN``."""
    found = set(states)
    if State.LOST in found:
        return State.LOST
    return State.PROVEN if found == {State.PROVEN} else State.UNKNOWN


async def _first_sample(admin: AdminClient, topic: str, group: str, queues: Sequence[MessageQueue]) -> Sample:
    sample = await take_sample(admin, topic, group, queues)
    silent = sorted({queue.broker_name for queue in queues if sample.queues[queue].stored is None})
    if silent:
        raise ClientError(
            f"{', '.join(silent)} did not tell the group's stored offsets, so nothing was reset: try again"
        )
    return sample
