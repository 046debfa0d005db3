"""Scene: the processes, steps, frames and deliveries of a history that a report shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.message.sysflag import PullSysFlag
from rewindmq.protocol.points import Point
from rewindmq.race.checker import Law, ProgressChange, Verdict, progress
from rewindmq.race.history import Event, History, Kind, Lab

# How many items from before the reset are shown.
_BEFORE: Final = 4
_LANE_ORDER: Final = ("admin", "namesrv", "broker", "consumer", "reader")


class Tone(StrEnum):
    """Subject of an arrow or mark; decides its colour."""

    RESET = "reset"
    COMMIT = "commit"
    PULL = "pull"
    STEP = "step"
    END = "end"


@dataclass(slots=True)
class Arrow:
    """A frame sent by one process and received by another; ``lost`` if it never arrived."""

    index: int
    source: str
    target: str
    sent_at: float
    at: float
    tone: Tone
    label: str
    lost: bool = False


@dataclass(slots=True)
class DrawnStep:
    """A step of one process."""

    index: int
    process: str
    at: float
    tone: Tone
    label: str


@dataclass(slots=True)
class DrawnDelivery:
    """Messages in a listener; ``until`` is None if the listener never returned."""

    index: int
    process: str
    at: float
    offsets: Sequence[int]
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Offence:
    """The step that broke a law; ``number`` is the violation's position in the verdict, from 1."""

    index: int
    at: float
    number: int


@dataclass(slots=True)
class Scene:
    """Everything that a report draws, for one queue.

    Attributes:
        lanes: names of processes, from top to bottom.
        moments: changes of the stored offset and of the redelivery.
        offences: steps of this queue that broke a law, in order. No single step leaves messages undelivered,
            so such a violation is shown, at the end, only if it is the first.
    """

    lanes: list[str] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)
    marks: list[DrawnStep] = field(default_factory=list)
    deliveries: list[DrawnDelivery] = field(default_factory=list)
    moments: Sequence[ProgressChange] = ()
    broker_name: str = ""
    queue_id: int = 0
    target: int | None = None
    start: float = 0.0
    end: float = 0.0
    offences: Sequence[Offence] = ()

    def times(self) -> list[float]:
        """Return the times of all shown items, in order."""
        times = {self.start, self.end}
        for arrow in self.arrows:
            times.update((arrow.sent_at, arrow.at))
        times.update(mark.at for mark in self.marks)
        times.update(delivery.at for delivery in self.deliveries)
        times.update(delivery.until for delivery in self.deliveries if delivery.until is not None)
        times.update(moment.at for moment in self.moments)
        times.update(offence.at for offence in self.offences)
        return sorted(time for time in times if self.start <= time <= self.end)

    def is_offending(self, index: int) -> bool:
        """Return True if the event with this index broke a law."""
        return any(offence.index == index for offence in self.offences)

    def stored_at(self, offence: Offence) -> int | None:
        """Return the stored offset after an offending step; None if it is unknown."""
        stored = [moment.stored for moment in self.moments if moment.event_index <= offence.index]
        return stored[-1] if stored else None


def make_scene(history: History, verdict: Verdict) -> Scene:
    """Build the scene of the first violation's queue; without violations, of the reset's first target."""
    scene = Scene()
    queues = progress(history)
    first = verdict.violations[0] if verdict.violations else None
    chosen = next(
        (
            queue
            for queue in queues
            if first is None or (queue.broker_name, queue.queue_id) == (first.broker_name, first.queue_id)
        ),
        None,
    )
    scene.offences = _offences(verdict)
    if chosen is not None:
        scene.broker_name, scene.queue_id = chosen.broker_name, chosen.queue_id
        scene.target, scene.moments = chosen.target, chosen.moments
    _SceneBuilder(scene, list(history), chosen.topic if chosen is not None else None).build()
    return scene


def _offences(verdict: Verdict) -> list[Offence]:
    """Return the offences on the first violation's queue, each step once."""
    offences: dict[int, Offence] = {}
    for number, violation in enumerate(verdict.violations, 1):
        first = verdict.violations[0]
        is_shown = (violation.broker_name, violation.queue_id) == (first.broker_name, first.queue_id)
        if is_shown and (number == 1 or violation.law is not Law.REDELIVERED):
            offences.setdefault(violation.index, Offence(violation.index, violation.at, number))
    return list(offences.values())


class _SceneBuilder:
    """Fills a scene in one pass over a history; matches sent commits, responses and resets with arrivals."""

    def __init__(self, scene: Scene, events: Sequence[Event], topic: str | None) -> None:
        self._scene = scene
        self._events = events
        self._topic = topic
        self._has_reset_started = False
        # Sent, and not yet matched with their arrival; newest last.
        self._commits: list[tuple[int, str, float, int]] = []
        self._answers: list[tuple[str, float, int | None, int | None]] = []
        self._requests: list[tuple[str, float]] = []

        self._notifications: list[tuple[str, float]] = []
        # Last committed offset by broker, for brokers that record no events of their own.
        self._last_committed: dict[str, int] = {}
        self._pulls: dict[tuple[str, Any], tuple[float, bool]] = {}
        self._seen_chains: set[tuple[str, Any]] = set()
        self._open_calls: dict[tuple[str, Any, tuple[int, ...]], DrawnDelivery] = {}
        self._handlers = {
            Lab.RESET_STARTED: self._reset_started,
            Lab.RESET_ACKNOWLEDGED: self._reset_acknowledged,
            Lab.RESET_REFUSED: self._reset_refused,
            Lab.PROCESS_STARTED: self._process_changed,
            Lab.PROCESS_STOPPED: self._process_changed,
            Lab.PROCESS_KILLED: self._process_changed,
            Lab.FRAME_SENT: self._frame_sent,
            Lab.FRAME_ARRIVED: self._frame_arrived,
            Lab.FRAME_DROPPED: self._frame_dropped,
            Point.RESET_SENT: self._reset_sent,
            Point.RESET_RECEIVED: self._reset_received,
            Point.CLIENT_NOTIFIED: self._notification_sent,
            Point.RESET_NOTIFICATION_RECEIVED: self._notification_received,
            Point.OFFSET_RESET: self._offset_reset,
            Point.COMMIT_SENT: self._commit_sent,
            Point.COMMIT_RECEIVED: self._commit_received,
            Point.COMMIT_FENCED: self._commit_fenced,
            Point.PULL_SENT: self._pull_sent,
            Point.PULL_ANSWERED: self._pull_answered,
            Point.PULL_CALLBACK: self._pull_callback,
            Point.LISTENER_CALLED: self._listener_called,
            Point.LISTENER_RETURNED: self._listener_returned,
            Point.RESULT_DISCARDED: self._result_discarded,
            **dict.fromkeys(_PLAIN_STEPS, self._plain_step),
        }
        # Processes that record events of their own. Of all others, only frames are known.
        self._recording = {event.process for event in events if isinstance(event.kind, Point)}

    def build(self) -> None:
        for index, event in enumerate(self._events):
            step = self._handlers.get(event.kind)
            if step is not None and self._is_about(event):
                step(index, event)
        self._add_lost_commits()
        self._mark_unshown_offences()
        self._trim()
        self._choose_lanes()

    def _is_about(self, event: Event) -> bool:
        """Return True if the event concerns the shown queue, or no single queue."""
        details = event.details
        fields = details.get("fields", details)
        topic, queue_id = fields.get("topic"), fields.get("queueId", fields.get("queue_id"))
        if self._topic is None:
            return True
        if topic is not None and topic != self._topic:
            return False
        broker = details.get("broker_name")
        scene = self._scene
        if event.kind is Lab.RESET_STARTED:
            return True
        return queue_id in (None, scene.queue_id) and broker in (None, scene.broker_name)

    # The reset.

    def _mark(self, index: int, event: Event, tone: Tone, label: str) -> None:
        self._scene.marks.append(DrawnStep(index, event.process, event.at, tone, label))

    def _arrow(self, index: int, event: Event, source: str, sent_at: float, tone: Tone, label: str) -> None:
        self._scene.arrows.append(Arrow(index, source, event.process, sent_at, event.at, tone, label))

    def _reset_started(self, index: int, event: Event) -> None:
        self._has_reset_started = True
        self._mark(index, event, Tone.RESET, f"reset to {event.details.get('offset', '?')}")

    def _reset_acknowledged(self, index: int, event: Event) -> None:
        self._mark(index, event, Tone.RESET, "acknowledged")

    def _reset_refused(self, index: int, event: Event) -> None:
        self._mark(index, event, Tone.END, "refused")

    def _reset_sent(self, index: int, event: Event) -> None:
        self._requests.append((event.process, event.at))

    def _reset_received(self, index: int, event: Event) -> None:
        if self._requests:
            source, sent_at = self._requests.pop(0)
            self._arrow(index, event, source, sent_at, Tone.RESET, _RESET_LABEL)

    def _notification_sent(self, index: int, event: Event) -> None:
        self._notifications.append((event.process, event.at))

    def _notification_received(self, index: int, event: Event) -> None:
        source, sent_at = self._notifications.pop(0) if self._notifications else (event.process, event.at)
        self._arrow(index, event, source, sent_at, Tone.RESET, _NOTIFICATION_LABEL)

    def _offset_reset(self, index: int, event: Event) -> None:
        epoch = event.details.get("epoch")
        more = f", epoch {epoch}" if epoch else ""
        self._mark(index, event, Tone.RESET, f"stored {event.details['offset']}{more}")

    # Commits.

    def _commit_sent(self, index: int, event: Event) -> None:
        self._commits.append((event.details["offset"], event.process, event.at, int(_COMMIT)))

    def _commit_received(self, index: int, event: Event) -> None:
        details = event.details
        sender = self._sender(details["offset"], details["carrier"])
        if details["offset"] == details.get("stored") and not self._scene.is_offending(index):
            return
        source, sent_at = sender or (event.process, event.at)
        label = _commit_label(details["carrier"], details["offset"])
        self._commit_arrow(index, event, source, sent_at, label)

    def _commit_fenced(self, index: int, event: Event) -> None:
        details = event.details
        source, sent_at = self._sender(details["offset"], details["carrier"]) or (event.process, event.at)
        label = f"{_commit_label(details['carrier'], details['offset'])} refused"
        self._commit_arrow(index, event, source, sent_at, label)

    def _commit_arrow(self, index: int, event: Event, source: str, sent_at: float, label: str) -> None:
        if source == event.process:
            self._mark(index, event, Tone.COMMIT, label)
        else:
            self._arrow(index, event, source, sent_at, Tone.COMMIT, label)

    def _sender(self, offset: int, carrier: int) -> tuple[str, float] | None:
        if carrier == RequestCode.PULL_MESSAGE:
            newest = max(((at, who) for (who, _), (at, _) in self._pulls.items()), default=None)
            return None if newest is None else (newest[1], newest[0])
        for position, (sent, source, at, _) in enumerate(self._commits):
            if sent == offset:
                del self._commits[position]
                return source, at
        return None

    # Pulls and deliveries.

    def _pull_sent(self, index: int, event: Event) -> None:
        self._pulls[event.process, event.details["chain"]] = (event.at, self._has_reset_started)

    def _pull_answered(self, index: int, event: Event) -> None:
        details = event.details
        self._answers.append((event.process, event.at, details.get("next"), details.get("code")))

    def _pull_callback(self, index: int, event: Event) -> None:
        details = event.details
        key = (event.process, details["chain"])
        _, is_fresh = self._pulls.get(key, (event.at, True))
        answer = self._answer(details["offset"])
        is_first = key not in self._seen_chains
        self._seen_chains.add(key)
        is_shown = details["status"] == "OFFSET_ILLEGAL" or (is_first and is_fresh) or not is_fresh
        if not self._has_reset_started or not is_shown or answer is None:
            return
        source, sent_at, code = answer
        late = "" if is_fresh else "late "
        label = f"{late}{_ANSWERS.get(details['status'], code)} →{details['offset']}"
        self._arrow(index, event, source, sent_at, Tone.PULL, label)

    def _answer(self, following: int) -> tuple[str, float, int | None] | None:
        for position, (source, at, next_offset, code) in enumerate(self._answers):
            if next_offset == following:
                del self._answers[position]
                return source, at, code
        return None

    def _listener_called(self, index: int, event: Event) -> None:
        offsets = event.details["offsets"]
        delivery = DrawnDelivery(index, event.process, event.at, offsets)
        self._scene.deliveries.append(delivery)
        self._open_calls[event.process, event.details["chain"], tuple(offsets)] = delivery

    def _listener_returned(self, index: int, event: Event) -> None:
        details = event.details
        delivery = self._open_calls.pop((event.process, details["chain"], tuple(details["offsets"])), None)
        if delivery is not None:
            delivery.until = event.at

    def _result_discarded(self, index: int, event: Event) -> None:
        self._mark(index, event, Tone.STEP, "result discarded")

    def _plain_step(self, index: int, event: Event) -> None:
        self._mark(
            index, event, Tone.STEP, _PLAIN_STEPS[event.kind].format(**{"offset": "", **event.details})
        )

    def _process_changed(self, index: int, event: Event) -> None:
        tone = Tone.STEP if event.kind is Lab.PROCESS_STARTED else Tone.END
        # A listener call ends with its process.
        for key in [key for key in self._open_calls if key[0] == event.process]:
            self._open_calls.pop(key).until = event.at
        self._mark(index, event, tone, event.kind.value.rpartition("_")[2])

    # Frames of processes that record no events of their own, and lost frames.

    def _frame_sent(self, index: int, event: Event) -> None:
        details = event.details
        if details["source"] in self._recording or details["form"] == "response":
            return
        if details["code"] == RequestCode.UPDATE_CONSUMER_OFFSET:
            self._commits.append((details["fields"]["commitOffset"], event.process, event.at, 15))

    def _frame_arrived(self, index: int, event: Event) -> None:
        details = event.details
        code, fields = details["code"], details["fields"]
        if details["target"] in self._recording or details["form"] == "response":
            return
        if code == RequestCode.RESET_CONSUMER_CLIENT_OFFSET:
            self._arrow(index, event, details["source"], event.at, Tone.RESET, _NOTIFICATION_LABEL)
        elif code == RequestCode.UPDATE_CONSUMER_OFFSET:
            sender = self._sender(fields["commitOffset"], 15)
            self._frame_commit(index, event, sender or (details["source"], event.at))
        elif code == RequestCode.PULL_MESSAGE and fields["sysFlag"] & PullSysFlag.COMMIT_OFFSET:
            self._frame_commit(index, event, (details["source"], event.at))

    def _frame_commit(self, index: int, event: Event, sender: tuple[str, float]) -> None:
        details = event.details
        broker, offset = details["target"], details["fields"]["commitOffset"]
        before = self._last_committed.get(broker)
        self._last_committed[broker] = offset
        if offset != before or self._scene.is_offending(index):
            self._arrow(index, event, *sender, Tone.COMMIT, _commit_label(details["code"], offset))

    def _frame_dropped(self, index: int, event: Event) -> None:
        details = event.details
        arrow = Arrow(
            index, details["source"], details["target"], event.at, event.at, Tone.END, details["name"], True
        )
        self._scene.arrows.append(arrow)

    def _add_lost_commits(self) -> None:
        """Show commits that never arrived as lost arrows."""
        for offset, source, at, _ in self._commits:
            target = self._scene.broker_name
            if target and source != target:
                label = f"{_commit_label(_COMMIT, offset)} lost"
                self._scene.arrows.append(Arrow(-1, source, target, at, at, Tone.END, label, True))

    def _mark_unshown_offences(self) -> None:
        """Add a mark for each offending step that is not shown yet."""
        shown = {item.index for item in self._items()}
        for index in [offence.index for offence in self._scene.offences if offence.index not in shown]:
            event = self._events[index]
            label = "pulls again" if event.kind is Point.PULL_SENT else event.kind.value.rpartition(".")[2]
            self._mark(index, event, Tone.STEP, label.replace("_", " "))

    def _items(self) -> list[Arrow | DrawnStep]:
        return [*self._scene.arrows, *self._scene.marks]

    # The shown time span and lanes.

    def _trim(self) -> None:
        scene = self._scene
        started = next(
            (event.at for event in reversed(self._events) if event.kind is Lab.RESET_STARTED), None
        )
        resets = [event.at for event in self._events if event.kind is Lab.RESET_STARTED]
        begin = resets[0] if resets else 0.0
        earlier = sorted(item.at for item in self._items() if item.at < begin)
        scene.start = earlier[-_BEFORE:][0] if earlier else begin
        if started is None:
            scene.start = 0.0
        scene.arrows = [arrow for arrow in scene.arrows if arrow.sent_at >= scene.start]
        scene.marks = [mark for mark in scene.marks if mark.at >= scene.start]
        scene.deliveries = [
            delivery
            for delivery in scene.deliveries
            if delivery.at >= scene.start or delivery.until is None or delivery.until > begin
        ]
        ends = [arrow.at for arrow in scene.arrows] + [mark.at for mark in scene.marks]
        ends += [delivery.until or delivery.at for delivery in scene.deliveries]
        ends += [moment.at for moment in scene.moments]
        ends += [offence.at for offence in scene.offences]
        scene.end = max(ends, default=scene.start + 1.0)

    def _choose_lanes(self) -> None:
        scene = self._scene
        names: dict[str, None] = {}
        for arrow in scene.arrows:
            names[arrow.source] = names[arrow.target] = None
        names.update(dict.fromkeys(mark.process for mark in scene.marks))
        names.update(dict.fromkeys(delivery.process for delivery in scene.deliveries))
        names.pop("producer", None)
        names.pop("lab", None)

        def rank(name: str) -> tuple[int, str]:
            kind = name.partition("-")[0]
            return (_LANE_ORDER.index(kind) if kind in _LANE_ORDER else len(_LANE_ORDER), name)

        scene.lanes = sorted(names, key=rank)
        known = set(scene.lanes)
        scene.marks = [mark for mark in scene.marks if mark.process in known]


def _commit_label(carrier: int, offset: int) -> str:
    """Return ``commit 10``, or ``pull commit 10`` if a PULL_MESSAGE (11) carries the offset."""
    return f"{'pull ' if carrier == RequestCode.PULL_MESSAGE else ''}commit {offset}"


_COMMIT: Final = RequestCode.UPDATE_CONSUMER_OFFSET
_RESET_LABEL: Final = "reset"
_NOTIFICATION_LABEL: Final = "notification"
_ANSWERS: Final = {
    "FOUND": "found",
    "NO_NEW_MSG": "empty",
    "NO_MATCHED_MSG": "no match",
    "OFFSET_ILLEGAL": "moved",
}
_PLAIN_STEPS: Final[dict[Kind, str]] = {
    Point.QUEUE_DROPPED: "dropped",
    Point.WAIT_OVER: "wait over",
    Point.OFFSET_APPLIED: "in memory {offset}",
    Point.QUEUE_ADDED: "queue at {offset}",
    Point.QUEUE_RESTARTED: "restarts at {offset}",
}
