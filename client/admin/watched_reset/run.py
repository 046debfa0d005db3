"""A watched reset from its first sample to its verdict, with repairs."""

from __future__ import annotations

import contextlib
import math
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rewindmq.client.admin.reset_target import Target
from rewindmq.client.admin.watched_reset.brokers import Brokers
from rewindmq.client.admin.watched_reset.follow import PATIENCE, Observer, follow, ignore_sample
from rewindmq.client.admin.watched_reset.preview import Preview
from rewindmq.client.admin.watched_reset.repair import BrokerRepair, modes_of, repair
from rewindmq.client.admin.watched_reset.routes import TopicShape
from rewindmq.client.admin.watched_reset.survey import bounds_of, first_offsets
from rewindmq.client.admin.watched_reset.take_sample import take_sample
from rewindmq.protocol.errors import ClientError, RewindMQError
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.watch.evidence.sample import Sample, silent_brokers
from rewindmq.watch.verdict.outlook import Outlook, outlook_of
from rewindmq.watch.verdict.queue_watch import QueueWatch
from rewindmq.watch.verdict.reset_watch import Change, ResetWatch, Waiting
from rewindmq.watch.verdict.states import State

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
        outlooks: what the watch will be able to say.
    """

    at: float
    before: Sample
    queues: tuple[QueueWatch, ...]
    modes: Mapping[str, str]
    outlooks: tuple[Outlook, ...] = ()


@dataclass(frozen=True, slots=True)
class Repair:
    """The ``number``-th repair, of these lost queues.

    A repair that succeeds at some brokers and fails at others has one item for the queues that were reset
    again, and one for the queues of each failure.

    Attributes:
        modes: broker name to the mode of the repair; empty if it failed.
        failure: why it failed; the queues stay lost.
    """

    number: int
    queues: tuple[MessageQueue, ...]
    modes: Mapping[str, str]
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class ResetVerdict:
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
    remind_after: float = math.inf,
    preview: Preview | None = None,
    brokers: Brokers | None = None,
) -> AsyncGenerator[Began | Change | Waiting | Repair | ResetVerdict]:
    """Carry a reset out, watch it, and reset lost queues again; the last item is the verdict.

    Args:
        patience: seconds after each reset until a queue is unknown.
        times: repairs, 0 to ``MAX_TIMES``.
        observe: called after each sample, before the changes that it shows.
        remind_after: see ``follow``.
        preview: what the cluster has just told of this reset; None asks for what the watch needs of it.
        brokers: asks the brokers, as for the preview; None makes its own.

    Raises:
        ClientError: a broker does not tell the stored offsets, so nothing was reset; or see
            ``ResetAdmin.reset``.
        ResponseError, RemotingError: see ``ResetAdmin.reset``.
    """
    brokers = Brokers(admin) if brokers is None else brokers
    shape = await brokers.routes.shape_of(topic)
    floors = await _floors(admin, topic, shape, preview)
    before = await _first_sample(admin, topic, group, shape.queues, brokers)
    began = admin.runtime.clock.monotonic()
    is_checked = preview is not None
    first = await admin.resets.reset(topic, group, target, mode=mode, force=force, is_checked=is_checked)
    targets = {queue: max(offset, floors.get(queue, 0)) for queue, offset in first.offset_table.items()}
    watch = ResetWatch(before, targets, began)
    queues = {item.queue: item for item in watch.queues}
    modes, outlooks = modes_of(first, first.offset_table), outlook_of(before, targets)
    yield Began(began, before, tuple(watch.queues), modes, outlooks)
    repairs = 0
    while True:
        following = follow(
            admin,
            topic,
            group,
            watch,
            patience=patience,
            observe=observe,
            brokers=brokers,
            remind_after=remind_after,
        )
        async with contextlib.aclosing(following) as changes:
            async for change in changes:
                yield change
        lost = {queue: item for queue, item in queues.items() if item.state is State.LOST}
        if not lost or repairs >= times:
            break
        before = await take_sample(admin, topic, group, list(lost))
        silent = silent_brokers(before)
        began = admin.runtime.clock.monotonic()
        targets = {queue: item.target for queue, item in lost.items() if queue.broker_name not in silent}
        outcomes = await repair(admin, topic, group, target, first, targets, force=force)
        for item in _repairs(repairs + 1, [*outcomes, *_unsampled(lost, silent)]):
            yield item
        targets = {
            queue: targets[queue] for each in outcomes if each.failure is None for queue in each.queues
        }
        if not targets:
            break
        repairs += 1
        # Messages up to the old offset of the first reset must come again.
        olds = {queue: lost[queue].old for queue in targets if lost[queue].is_rewind}
        watch = ResetWatch(before, targets, began, olds)
        queues.update({item.queue: item for item in watch.queues})
    yield ResetVerdict(common_state(item.state for item in queues.values()), tuple(queues.values()), repairs)


def common_state(states: Iterable[State]) -> State:
    """Return ``LOST`` if a queue is lost, ``PROVEN`` if all are proven and there is one, else ``UNKNOWN``."""
    found = set(states)
    if State.LOST in found:
        return State.LOST
    return State.PROVEN if found == {State.PROVEN} else State.UNKNOWN


async def _floors(
    admin: AdminClient, topic: str, shape: TopicShape, preview: Preview | None
) -> Mapping[MessageQueue, int]:
    """Return the first message of each queue that is read; offsets below have none that could come again."""
    if preview is not None:
        return {row.queue: row.min_offset for row in preview.queues if row.is_read}
    # A broker that does not answer is named by the first sample.
    with contextlib.suppress(RewindMQError):
        read = [queue for queue in shape.queues if shape.is_read(queue)]
        return await first_offsets(admin, await bounds_of(admin, topic, shape), read)
    return {}


async def _first_sample(
    admin: AdminClient, topic: str, group: str, queues: Sequence[MessageQueue], brokers: Brokers
) -> Sample:
    sample = await take_sample(admin, topic, group, queues, brokers)
    if silent := silent_brokers(sample):
        raise ClientError(
            f"{', '.join(silent)} did not tell the group's stored offsets, so nothing was reset: try again"
        )
    return sample


def _unsampled(lost: Iterable[MessageQueue], silent: Iterable[str]) -> list[BrokerRepair]:
    """Return the failures of brokers without whose stored offsets a reset cannot be watched."""
    text = "{} did not tell the group's stored offsets, so it was not reset again"
    return [
        BrokerRepair(
            broker, tuple(queue for queue in lost if queue.broker_name == broker), failure=text.format(broker)
        )
        for broker in silent
    ]


def _repairs(number: int, outcomes: Sequence[BrokerRepair]) -> Iterator[Repair]:
    """Yield what was reset again as one item, and each failure."""
    done = [each for each in outcomes if each.failure is None]
    if done:
        queues = tuple(queue for each in done for queue in each.queues)
        yield Repair(number, queues, {each.broker: each.mode for each in done})
    for each in outcomes:
        if each.failure is not None:
            yield Repair(number, each.queues, {}, each.failure)
