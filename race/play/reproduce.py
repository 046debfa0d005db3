"""Three runs at full length: the suspected race and the real one (docs/spec/races.md E.3, E.4).

Each run is a race of the catalogue with an epilogue. When the stored offset has been raised, or would have
been by now, the consumer is killed and another one starts. The offset at which it starts shows whether the
reset was lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.checker import Verdict, judge
from rewindmq.race.errors import RaceError
from rewindmq.race.history import Event, History, Lab
from rewindmq.race.scenario.catalogue import find_scenario
from rewindmq.race.scenario.scenario import Loss, Scenario
from rewindmq.race.stage.processes import ProcessStage
from rewindmq.race.stage.settle import settle
from rewindmq.race.stage.stage import GROUP, TOPIC, consumer_process

CONSUMER_NAME: Final = "A"
_CONSUMER: Final = consumer_process(CONSUMER_NAME)
# The broker suspends a pull for 20 s at most; the next commit comes within 5 s.
_EPILOGUE_AFTER: Final = 26.0
_LOOK_EVERY: Final = 0.25

OnStep = Callable[["Script", float, str], None]


@dataclass(frozen=True, slots=True)
class Script:
    """One of the three runs.

    Attributes:
        name: the run's name on the terminal.
        explanation: one sentence.
    """

    name: str
    scenario_id: str
    profile: Profile
    explanation: str

    @property
    def scenario(self) -> Scenario:
        return find_scenario(self.scenario_id)

    @property
    def documented(self) -> frozenset[Loss]:
        return self.scenario.cases[self.profile, ResetMode.CLASSIC]


SCRIPTS: Final = (
    Script(
        "suspected",
        "SEED",
        Profile.UNGUARDED,
        "4.9.4 without its checks: a listener slower than the wait returns, and its result is committed",
    ),
    Script(
        "shipped",
        "SEED",
        Profile.V49,
        "4.9.4 as released: the same listener returns, and its result for the dropped queue is discarded",
    ),
    Script(
        "real hole",
        "R1",
        Profile.V49,
        "4.9.4 as released, idle queue: the broker answers a suspended pull after the wait",
    ),
)


@dataclass(frozen=True, slots=True)
class Reproduction:
    """The result of one run.

    Attributes:
        history: the whole history, including the epilogue.
        verdict: the verdict on the events before the consumer was killed.
        target: the offset that the reset asked for.
        old: the stored offset before the reset.
        restarted_at: the offset at which the second consumer started.
        lost: queue offsets that were never delivered again.
    """

    script: Script
    history: History
    verdict: Verdict
    target: int
    old: int
    restarted_at: int
    lost: tuple[int, ...]

    @property
    def is_documented(self) -> bool:
        """True if the verdict is as documented, and messages are lost exactly if a loss is documented."""
        is_lost = bool(self.script.documented)
        return self.verdict.losses == self.script.documented and bool(self.lost) == is_lost

    @property
    def reset_at(self) -> float:
        """Time of the reset request in the history, in protocol seconds."""
        return _reset_at(self.history)

    def stored(self) -> list[tuple[float, int]]:
        """Return every change of the stored offset: seconds since the reset, and the offset."""
        changes: list[tuple[float, int]] = []
        for event in _commits(self.history):
            offset = event.details["offset"]
            if not changes or changes[-1][1] != offset:
                changes.append((event.at - self.reset_at, offset))
        return changes


async def reproduce(time_scale: float, on_step: OnStep) -> list[Reproduction]:
    """Play all three runs at the same time, each with servers of its own.

    Args:
        time_scale: 1 plays them at full length, about 70 s.
        on_step: called as ``on_step(script, seconds, text)`` for each step, with the seconds since the run
            began.

    Raises:
        RaceError: a run could not be played.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_reproduce(script, time_scale, on_step)) for script in SCRIPTS]
    except BaseExceptionGroup as failures:
        # Report the first failure; the others often have the same cause.
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]


async def _reproduce(script: Script, time_scale: float, on_step: OnStep) -> Reproduction:
    async with ProcessStage(script.profile, ResetMode.CLASSIC, time_scale=time_scale) as stage:
        following = asyncio.create_task(_follow(stage, script, on_step))
        try:
            await script.scenario.play(stage)
            killed_at = await _epilogue(stage)
            await settle(stage)
        except RewindMQError as error:
            raise RaceError(f"{script.name}: {error}") from None
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
        return _reproduction(script, stage.history, killed_at)


async def _epilogue(stage: ProcessStage) -> float:
    """Kill the consumer when the reset is lost or the deadline passes; start another.

    Return the time of the kill.
    """
    deadline = _reset_at(stage.history) + _EPILOGUE_AFTER
    # The judge counts a reset that is not applied yet as lost.
    while stage.now < deadline and not (_applied_at(stage.history) and judge(stage.history).losses):
        await stage.sleep(_LOOK_EVERY)
    killed_at = stage.now
    await stage.consumers[CONSUMER_NAME].kill()
    await stage.sleep(1.0)
    await stage.consumer(CONSUMER_NAME)
    return killed_at


def _reproduction(script: Script, history: History, killed_at: float) -> Reproduction:
    before = History(event for event in history if event.at <= killed_at)
    reset_at, applied_at = _reset_at(history), _applied_at(history)
    added = [event for event in history.of(Point.QUEUE_ADDED, topic=TOPIC) if event.at > killed_at]
    if applied_at is None or not added:
        raise RaceError(f"{script.name}: the reset was not applied, or no second consumer took the queue")
    delivered = {
        offset
        for event in history.of(Point.LISTENER_CALLED, topic=TOPIC)
        if event.at > applied_at
        for offset in event.details["offsets"]
    }
    target = _target(history)
    old = [event for event in _commits(history) if event.at < reset_at][-1].details["offset"]
    sent = len(history.of(Lab.MESSAGE_SENT))
    lost = tuple(offset for offset in range(target, sent) if offset not in delivered)
    return Reproduction(script, history, judge(before), target, old, added[0].details["offset"], lost)


def _reset_at(history: History) -> float:
    return history.of(Lab.RESET_STARTED)[0].at


def _target(history: History) -> int:
    targets: list[tuple[str, int, int]] = history.of(Lab.RESET_ACKNOWLEDGED)[0].details["targets"]
    return targets[0][2]


def _applied_at(history: History) -> float | None:
    """Return when the target was first stored after the reset; None if it never was."""
    reset_at, target = _reset_at(history), _target(history)
    stored = (
        event.at for event in _commits(history) if event.at > reset_at and event.details["offset"] == target
    )
    return next(stored, None)


def _commits(history: History) -> list[Event]:
    return history.of(Point.COMMIT_RECEIVED, topic=TOPIC, group=GROUP)


async def _follow(stage: ProcessStage, script: Script, on_step: OnStep) -> None:
    """Report the steps of a run while it goes on."""
    shown = 0
    while True:
        events = steps(stage.history)
        for event, text in events[shown:]:
            on_step(script, event.at, text)
        shown = max(shown, len(events))
        await stage.sleep(_LOOK_EVERY)


def steps(history: History) -> list[tuple[Event, str]]:
    """Return the events to report, each with its text."""
    shown: list[tuple[Event, str]] = []
    stored: int | None = None
    started = 0
    for event in history:
        details = event.details
        if details.get("topic", TOPIC) != TOPIC:
            continue
        text = ""
        if event.kind is Point.COMMIT_RECEIVED:
            if stored != details["offset"]:
                stored = details["offset"]
                text = f"broker: the stored offset is {stored}"
        elif event.kind is Point.QUEUE_ADDED:
            text = f"consumer: pulls the queue from {details['offset']}"
        elif event.kind is Lab.PROCESS_STARTED and event.process == _CONSUMER:
            started += 1
            text = "a consumer starts" if started == 1 else "another consumer starts"
        elif event.kind is Lab.RESET_STARTED:
            text = f"administrator: reset to {details['offset']}"
        else:
            text = _TEXTS.get(event.kind, "")
        if text:
            shown.append((event, text))
    return shown


_TEXTS: Final = {
    Lab.RESET_ACKNOWLEDGED: "administrator: the reset is acknowledged",
    Lab.PROCESS_KILLED: "the consumer is killed (kill -9)",
    Point.SUSPENDED: "consumer: reset notification received, suspended",
    Point.QUEUE_DROPPED: "consumer: the queue is dropped",
    Point.WAIT_OVER: "consumer: the wait of 10 s is over",
    Point.RESULT_DISCARDED: "consumer: a late result is discarded",
}
