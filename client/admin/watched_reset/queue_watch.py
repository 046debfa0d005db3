"""Follows a reset in one queue, from sample to sample. Pure: it sends no request and reads no clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from rewindmq.client.admin.watched_reset.gaps import FAR, Leaps, Passing
from rewindmq.client.admin.watched_reset.group_watch import GroupSample, GroupWatch
from rewindmq.client.admin.watched_reset.positions import Position, low_of
from rewindmq.client.admin.watched_reset.races import Clues, name_races
from rewindmq.client.admin.watched_reset.sample import QueueSample, Sample
from rewindmq.client.admin.watched_reset.states import FINAL, TRANSITIONS, Sign, State
from rewindmq.protocol.message_queue import MessageQueue

# Seconds. A suspended pull ends 20 s after it was sent, a rebalance comes every 20 s, and consumers commit
# every 5 s: whatever contradicts a redelivery shows within this time.
HOLD: Final = 40.0
# A commit that was overtaken is repeated within 5 s.
_REPAIR: Final = 6.0
# The classic wait is 10 s, and a rebalance may follow.
_SETTLED: Final = 30.0
# The rates of consumers cover a minute that ended up to 10 s ago. In the first interval, they cover every
# moment since the reset. In the second, which is for queues that were dropped during the classic wait, they
# cover every moment since the wait, except up to 1 s at its end. Then they cover none before the reset.
_RATES: Final = (55.0, 60.0)
_RATES_AFTER_WAIT: Final = (60.0, 71.0)
_WAIT: Final = (3.0, 9.0)
# Two rates overlap if one is at most so much later: they cover a minute, and are up to 10 s old.
_OVERLAP: Final = 50.0
# The last moment at which rates are looked at.
_LATEST: Final = 80.0
# What consumers show of a rewind or skip.
_OF_CONSUMERS: Final = (Sign.REDELIVERY, Sign.COUNTED, Sign.HELD)
_ALONE: Final = "no consumer is connected: the stored offset takes effect when one takes the queue"
# Consumers report times in ms; RewindMQ's compute them from another clock.
_SAME_MS: Final = 50


@dataclass(frozen=True, slots=True)
class _Work:
    """A consumer's work on the redelivery: the lowest offset that it has not consumed."""

    seconds: float
    client_id: str
    low: int


@dataclass(slots=True)
class QueueWatch:
    """The watched reset of one queue.

    Attributes:
        old: where the group was right before the reset: the stored offset, or ``group_offset``.
        target: the offset that the reset asks for.
        group: the group's consumers; all queues of a reset share it.
        state: see ``TRANSITIONS``.
        since: when the state was reached, in seconds after the reset.
        stored: the stored offset of the last sample whose broker answered.
        consumer: the consumer that has the queue, by the last sample.
        reason: why the state is ``LOST`` or ``UNKNOWN``, in words.
        races: races of docs/race/ that the evidence fits; empty unless ``LOST``.
    """

    queue: MessageQueue
    old: int
    target: int
    before: QueueSample
    group: GroupWatch
    state: State = State.ACCEPTED
    since: float = 0.0
    stored: int | None = None
    consumer: str | None = None
    reason: str = ""
    races: tuple[str, ...] = ()
    clues: Clues = field(default_factory=Clues)
    _progress: int = field(init=False)
    _held_since: float | None = None
    _jumped_since: float | None = None
    _untouched_since: float | None = None
    _is_finished: bool = False
    _last: _Work | None = None
    # Where the consumer was in the first of the samples that show its work without a gap.
    _run: _Work | None = None
    # The fastest redelivery between two samples, in messages per second.
    _fastest: float = 0.0
    # Time and consumed messages of the last sample before the rates cover enough.
    _early: tuple[float, float] | None = None
    _holders: set[str] = field(default_factory=set)
    # Consumers that the reset has not reached yet, and when they were last seen so: client id to seconds.
    _unreached: dict[str, float] = field(default_factory=dict)
    # Those that had the queue when it may have been redelivered already.
    _workers: set[str] = field(default_factory=set)
    _consumed_through: bool = False
    _may_have_consumed: bool = False
    _has_lost_worker: bool = False
    _mute_worker: str | None = None
    _is_filtered: bool = False
    # Time of the last sample whose broker answered.
    _seen_at: float = 0.0
    _leaps: Leaps = field(init=False)
    # The stored offset was above messages that a consumer held, and the consumer moved up to it.
    _has_followed_jump: bool = False
    _jumped_to: int = 0
    _passing: Passing = field(init=False)
    # A consumer that was not listed may have had the queue.
    _had_short_list: bool = False
    _worked_in_wait: bool = False
    # Of consumers whose work is older than the reset: client id to the lowest offset not consumed.
    _earlier: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self._progress = self.target
        self._leaps = Leaps(self.target)
        self._passing = Passing(self.before, self.old, self.target)
        lows = {position.client_id: low_of(position) for position in self.before.live}
        self._earlier = {client: low for client, low in lows.items() if self.target < low < self.old}

    @property
    def is_over(self) -> bool:
        return self.state in FINAL

    @property
    def is_rewind(self) -> bool:
        return self.target < self.old

    def add(self, seconds: float, sample: Sample, *, is_counted: bool = False) -> bool:
        """Take in a sample, ``seconds`` after the reset; return True if the state has changed.

        Args:
            is_counted: the consumers consumed every message to be redelivered, see ``RedeliveryCount``.
        """
        if self.is_over:
            return False
        group = self.group.add(seconds, sample)
        seen = sample.queues[self.queue]
        if seen.stored is None:
            self.clues.broker_was_away = True
            self._forget_work()
            return False
        self._had_short_list = self._had_short_list or group.is_short
        self.stored = seen.stored
        self.consumer = next((position.client_id for position in seen.live), None)
        self._gather_clues(seconds, seen, group)
        signs = (
            self._rewind_signs(seconds, seen, group, is_counted=is_counted)
            if self.is_rewind
            else self._skip_signs(seconds, seen, group)
        )
        if seconds >= _SETTLED and not group.known and group.sample.is_complete:
            signs.append(Sign.ALONE)
        self._seen_at = seconds
        if self.clues.is_broadcasting:
            # Such consumers keep their own offsets, so what they consume says nothing of the reset.
            signs = [sign for sign in signs if sign not in _OF_CONSUMERS]
        changed = False
        for sign in signs:
            changed = self._apply(sign, seconds) or changed
        return changed

    def _forget_work(self) -> None:
        """Begin again to prove: what happened while the broker did not answer is unknown."""
        self._held_since = self._jumped_since = self._last = None
        self._is_finished = False

    def end(self, seconds: float) -> bool:
        """Give up; return True if the state has changed."""
        return not self.is_over and self._apply(Sign.OVER, seconds)

    def _apply(self, sign: Sign, seconds: float) -> bool:
        after = TRANSITIONS[self.state].get(sign)
        if after is None:
            return False
        if after is State.LOST:
            self.reason = str(sign)
            self.races = name_races(self.clues, has_jumped=sign is Sign.JUMPED)
        elif after is State.UNKNOWN:
            self.reason = _ALONE if sign is Sign.ALONE else self._doubt()
        self.state, self.since = after, seconds
        return True

    def _gather_clues(self, seconds: float, seen: QueueSample, group: GroupSample) -> None:
        clues, sample = self.clues, group.sample
        clues.is_broadcasting = clues.is_broadcasting or sample.is_broadcasting
        clues.is_pulling = clues.is_pulling or sample.is_pulling
        self._is_filtered = self._is_filtered or sample.is_filtered
        self._forget_earlier_work(seen, sample)
        clues.has_lost_client = clues.has_lost_client or group.has_lost_client
        if seen.live and seconds > 2.0:
            clues.had_consumer = True
        self._note_holders(seconds, seen, sample)
        for position in seen.live:
            clues.has_new_client = position.client_id not in self.group.before
            if seconds >= _WAIT[0]:
                self._workers.add(position.client_id)
        if seconds >= _WAIT[0]:
            self._workers |= group.mute
        self._worked_in_wait = self._worked_in_wait or bool(seen.live and _WAIT[0] <= seconds <= _WAIT[1])

    def _note_holders(self, seconds: float, seen: QueueSample, sample: Sample) -> None:
        """Note who may have redelivered the queue.

        Not a consumer that right after the reset still has the queue as before, and has given it up by the
        next sample: the classic notification has reached it in between. It may redeliver other queues later.
        """
        live = {position.client_id for position in seen.live}
        for client_id, last in [*self._unreached.items()]:
            if client_id in live or sample.is_complete or seconds - last > FAR:
                del self._unreached[client_id]
            if seconds - last > FAR:
                self._holders.add(client_id)
        for position in seen.live:
            if seconds <= FAR and low_of(position) >= self.old and self._is_same(position):
                self._unreached[position.client_id] = seconds
            else:
                self._holders.add(position.client_id)

    def _forget_earlier_work(self, seen: QueueSample, sample: Sample) -> None:
        """Note which consumers gave the queue up, or went back: what they hold later is redelivered."""
        lows = {position.client_id: low_of(position) for position in seen.live}
        for client_id, low in [*self._earlier.items()]:
            if client_id not in lows and not sample.is_complete:
                continue
            if lows.get(client_id, -1) < low:
                del self._earlier[client_id]
            else:
                self._earlier[client_id] = lows[client_id]

    def _rewind_signs(
        self, seconds: float, seen: QueueSample, group: GroupSample, *, is_counted: bool
    ) -> list[Sign]:
        sample = group.sample
        stored = self.stored if self.stored is not None else self.old
        working = [position for position in seen.live if self.target <= low_of(position) < self.old]
        signs = []
        if self.target <= stored < self.old:
            self.clues.was_stored = True
            signs.append(Sign.AT_TARGET)
        holding = [position for position in working if position.first is not None]
        redelivered = [position for position in holding if position.client_id not in self._earlier]
        if holding:
            self._note_jump(seconds, stored, holding[0], seen, sample)
        self._leaps.note_below(low_of(position) for position in seen.live if position.first is not None)
        if redelivered:
            signs.append(Sign.REDELIVERY)
            self._note_work(seconds, redelivered[0])
        elif self._held_since is not None and not working:
            self._note_end(seconds, seen)
        if is_counted and self._held_since is None and self._is_through(stored, seen):
            signs.append(Sign.COUNTED)
            self._held_since = seconds
            self._is_finished = True
        self._forget_left_work(seen, sample)
        is_through = sample.is_complete and not working
        if is_through and self._jumped_since is not None and self._is_finished:
            # It may have consumed everything before its next commit, or have moved up to the stored offset.
            self._has_followed_jump = True
            self._jumped_since = None
        if self._jumped_since is not None and (seconds - self._jumped_since >= _REPAIR or is_through):
            signs.append(Sign.JUMPED)
        if self._is_held(seconds) and (is_counted or not (self._leaps.are_open or self._has_followed_jump)):
            signs.append(Sign.HELD)
        if self._is_untouched(seconds, stored, working, seen, group):
            signs.append(Sign.UNTOUCHED)
        return signs

    def _note_jump(
        self, seconds: float, stored: int, holding: Position, seen: QueueSample, sample: Sample
    ) -> None:
        """Note whether the stored offset is above a message that a consumer holds.

        While two consumers have the queue, the offset may be that of the other.
        """
        others = [other for other in seen.live if other.client_id != holding.client_id]
        if stored <= low_of(holding) or any(stored <= low_of(other) for other in others):
            if self._jumped_since is not None and low_of(holding) >= self._jumped_to:
                self._has_followed_jump = True
            self._jumped_since = None
        elif self._jumped_since is None and sample.is_complete:
            self._jumped_since = seconds
            self._jumped_to = stored

    def _note_work(self, seconds: float, holding: Position) -> None:
        """Note that a consumer holds a message to be redelivered."""
        low = low_of(holding)
        last = self._last
        is_same = last is not None and last.client_id == holding.client_id
        is_next = is_same and last is not None and last.low <= low
        is_adjacent = last is not None and self._seen_at <= last.seconds < seconds <= last.seconds + FAR
        if self._held_since is None or not is_next:
            self._held_since = seconds
            self._fastest = 0.0
        if is_next and is_adjacent and last is not None and self._run is not None:
            step, run = _since(last, low, seconds), _since(self._run, low, seconds)
            self._fastest = max(self._fastest, step[0] / step[1])
            self._leaps.go_on(holding.client_id, low, step, run)
        else:
            stored = self.old if self.stored is None else self.stored
            self._leaps.begin(holding.client_id, low, seconds - self._seen_at, stored, is_same=is_same)
            self._run = _Work(seconds, holding.client_id, low)
        self._is_finished = False
        self._last = _Work(seconds, holding.client_id, low)
        self._progress = max(self._progress, low)

    def _forget_left_work(self, seen: QueueSample, sample: Sample) -> None:
        """Forget where a consumer was if it has given the queue up: it may take it again elsewhere."""
        clients = {position.client_id for position in seen.live}
        if self._last is not None and sample.is_complete and self._last.client_id not in clients:
            self._last = None

    def _is_through(self, stored: int, seen: QueueSample) -> bool:
        """True if the reset was stored, and the consumer is at the old offset or past it by now."""
        return (
            self.clues.was_stored
            and stored >= self.old
            and bool(seen.live)
            and all(low_of(position) >= self.old for position in seen.live)
        )

    def _note_end(self, seconds: float, seen: QueueSample) -> None:
        """Note that no consumer is below the old offset any more: it has come there, or has been moved there.

        The rest of the redelivery must be as fast as the part that was seen. Otherwise the consumer may have
        taken the queue over again at the old offset, between two samples.
        """
        last = self._last
        if self._is_finished or last is None:
            return
        rest = self.old - last.low
        self._is_finished = any(
            position.client_id == last.client_id for position in seen.live
        ) and rest <= 2 * self._fastest * (seconds - last.seconds)
        if not self._is_finished:
            self._held_since = None

    def _is_held(self, seconds: float) -> bool:
        return (
            self._held_since is not None and self._jumped_since is None and seconds - self._held_since >= HOLD
        )

    def _is_untouched(
        self, seconds: float, stored: int, working: list[Position], seen: QueueSample, group: GroupSample
    ) -> bool:
        """True if the old offset is stored again or still, and nothing can have been redelivered."""
        is_complete = group.sample.is_complete
        is_old = stored >= self.old and not working and not self._is_finished and is_complete
        if not is_old or (seen.positions and not seen.live):
            self._untouched_since = None
            return False
        if self._untouched_since is None:
            self._untouched_since = seconds
        if seconds < _SETTLED or seconds - self._untouched_since < _SETTLED / 2:
            return False
        if not seen.live and not self.clues.had_consumer:
            # A consumer that pulls itself may report no queue. Then it may have redelivered what was stored.
            return not (self.clues.is_pulling and self.clues.was_stored)
        if seen.live and all(self._is_same(position) for position in seen.live):
            self.clues.is_same_queue_object = True
            return True
        return self._rates_exclude(seconds, group)

    def _is_same(self, position: Position) -> bool:
        """True if the consumer has had the queue since before the reset, and consumed nothing of it since."""
        return any(
            earlier.client_id == position.client_id
            and abs(earlier.last_consume - position.last_consume) <= _SAME_MS
            for earlier in self.before.live
        )

    def _rates_exclude(self, seconds: float, group: GroupSample) -> bool:
        """True if the consumers consumed too little for this queue's redelivery."""
        sample = group.sample
        consumed = self._consumed_since_reset(seconds, group)
        if consumed is None:
            return False
        # A consumer that has left no longer tells how much it consumed, and some never do.
        workers = group.known if self._had_short_list else self._workers
        silent = workers - sample.consumed.keys()
        self._has_lost_worker = not silent <= sample.clients
        self._mute_worker = min(silent, default=None)
        self._may_have_consumed = bool(silent) or self._is_filtered or consumed >= self.old - self._progress
        return not self._may_have_consumed

    def _consumed_since_reset(self, seconds: float, group: GroupSample) -> float | None:
        """Return an upper bound of the messages consumed since the redelivery can have begun.

        None: the rates of this sample do not cover that time, or cover the time before the reset, too.
        """
        rates = group.sample.consumed
        consumed = (
            group.consumed
            if self._had_short_list
            else sum(rates.get(client_id, 0.0) for client_id in self._holders)
        )
        first, last = _RATES if self._worked_in_wait else _RATES_AFTER_WAIT
        if seconds < first:
            self._early = seconds, consumed
            return None
        if seconds <= last:
            return consumed
        # No sample came in time. The last one before, and this one, cover it together if they overlap.
        if self._early is None or seconds > min(_LATEST, self._early[0] + _OVERLAP):
            return None
        return self._early[1] + consumed

    def _skip_signs(self, seconds: float, seen: QueueSample, group: GroupSample) -> list[Sign]:
        stored = self.stored if self.stored is not None else self.old
        is_there = stored >= self.target and all(low_of(position) >= self.target for position in seen.live)
        signs = []
        if stored >= self.target:
            self.clues.was_stored = True
            signs.append(Sign.AT_TARGET)
            if (
                any(self.old < low_of(position) < self.target for position in seen.live)
                and seconds > _SETTLED
            ):
                self._consumed_through = True
        elif seconds > _SETTLED:
            self._consumed_through = True
            if self._untouched_since is None:
                self._untouched_since = seconds
            if seconds - self._untouched_since >= _SETTLED / 2:
                signs.append(Sign.UNTOUCHED)
        self._passing.add(seconds, seen, group, is_there=is_there)
        if is_there and seen.live:
            signs.append(Sign.REDELIVERY)
            self._held_since = seconds if self._held_since is None else self._held_since
        elif not is_there:
            self._held_since = None
        if self._is_held(seconds) and self._passing.is_excluded and not self._consumed_through:
            signs.append(Sign.HELD)
        return signs

    def _doubt(self) -> str:
        if self.clues.broker_was_away:
            return "the broker did not answer at times"
        if self.group.shared:
            names = ", ".join(sorted(self.group.shared))
            return f"several consumers have the client id {names}, and a broker asks only one of them"
        if self.consumer is None:
            return "no consumer has the queue: the stored offset takes effect when one takes it"
        if not self.is_rewind and (self._consumed_through or not self._passing.is_excluded):
            return "the consumers may have consumed the messages up to the target instead of skipping them"
        if self._leaps.are_open or self._has_followed_jump:
            return "the redelivery was seen with a gap: a consumer may have left messages out"
        if self._held_since is not None:
            return "the redelivery has begun, but was not watched for long enough"
        if self._has_lost_worker:
            return "a consumer that had the queue has left: it may have consumed the redelivery"
        if self._mute_worker is not None:
            return f"consumer {self._mute_worker} had the queue, and does not tell how much it consumed"
        if self._is_filtered:
            return "the subscription leaves messages out, so the consumed ones cannot be compared"
        if self._may_have_consumed:
            return "the consumers consumed so much that a redelivery between two samples cannot be excluded"
        return f"consumer {self.consumer} has not begun the redelivery"


def _since(work: _Work, low: int, seconds: float) -> tuple[int, float]:
    """Return the messages that a consumer consumed since, and the seconds."""
    return low - work.low, seconds - work.seconds


def group_offset(seen: QueueSample, target: int) -> int:
    """Return where a group is that may be reset to ``target``.

    It is the stored offset; brokers correct one above the queue's end. Consumers store what they have
    consumed every 5 s. If the target is what they have consumed since, it is the lowest offset that they have
    not consumed.
    """
    stored = min(seen.stored or 0, seen.max_offset)
    low = max((low_of(position) for position in seen.live), default=stored)
    return min(low, seen.max_offset) if stored <= target < low else stored
