"""The seed's suspicion, and the race that is real: three runs at full length (docs/spec/races.md E.3, E.4).

Each is a race of the catalogue with an epilogue: when the stored offset has been pushed up, or would have
been by now, the consumer is killed and another one started. Where that one begins is what the reset was
worth.
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

MEMBER: Final = "A"
_CONSUMER: Final = consumer_process(MEMBER)
# A held pull is answered after 20 s at most; the next commit comes within 5 s.
_EPILOGUE_AFTER: Final = 26.0
_LOOK_EVERY: Final = 0.25

Tell = Callable[["Script", float, str], None]


@dataclass(frozen=True, slots=True)
class Script:
    """One of the three.

    Attributes:
        name: what it is called on the terminal.
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
        "the client of the suspicion: a listener slower than the wait returns, and is committed",
    ),
    Script(
        "shipped",
        "SEED",
        Profile.V49,
        "the same with 4.9.4, which discards the result of a queue it has dropped",
    ),
    Script(
        "real hole",
        "R1",
        Profile.V49,
        "4.9.4 again, with an idle queue: the pull held at the reset is answered after the wait",
    ),
)


@dataclass(frozen=True, slots=True)
class Reproduction:
    """What came of one run.

    Attributes:
        history: all of it, the epilogue too.
        verdict: of the time before the consumer was killed.
        target: what the reset asked for.
        old: what was stored when it came.
        restarted_at: the offset at which the second consumer began.
        lost: queue offsets that were not delivered again, and never will be.
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
        """Whether both judge and second consumer say what is documented."""
        is_lost = bool(self.script.documented)
        return self.verdict.losses == self.script.documented and bool(self.lost) == is_lost

    @property
    def reset_at(self) -> float:
        """When the reset was asked for, seconds of the history."""
        return _reset_at(self.history)

    def stored(self) -> list[tuple[float, int]]:
        """Every change of the stored offset: seconds since the reset, the offset."""
        changes: list[tuple[float, int]] = []
        for event in _commits(self.history):
            offset = event.details["offset"]
            if not changes or changes[-1][1] != offset:
                changes.append((event.at - self.reset_at, offset))
        return changes


async def reproduce(time_scale: float, tell: Tell) -> list[Reproduction]:
    """All three at the same time, each with servers of its own.

    Args:
        time_scale: 1 plays them at full length, a bit more than a minute.
        tell: called as ``tell(script, seconds, text)`` when something worth telling happens; seconds since
            the beginning of that run.

    Raises:
        RaceError: one could not be played.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_reproduce(script, time_scale, tell)) for script in SCRIPTS]
    except BaseExceptionGroup as failures:
        # One reason is enough.
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]


async def _reproduce(script: Script, time_scale: float, tell: Tell) -> Reproduction:
    async with ProcessStage(script.profile, ResetMode.CLASSIC, time_scale=time_scale) as stage:
        telling = asyncio.create_task(_follow(stage, script, tell))
        try:
            await script.scenario.play(stage)
            killed_at = await _epilogue(stage)
            await settle(stage)
        except RewindMQError as error:
            raise RaceError(f"{script.name}: {error}") from None
        finally:
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)
        return _reproduction(script, stage.history, killed_at)


async def _epilogue(stage: ProcessStage) -> float:
    """Kill the consumer once the reset is lost, or would be; start another; returns when it was killed."""
    deadline = _reset_at(stage.history) + _EPILOGUE_AFTER
    # What has not been applied yet counts as lost to the judge.
    while stage.now < deadline and not (_applied_at(stage.history) and judge(stage.history).losses):
        await stage.sleep(_LOOK_EVERY)
    killed_at = stage.now
    await stage.members[MEMBER].kill()
    await stage.sleep(1.0)
    await stage.member(MEMBER)
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
    """When the target was stored for the first time after the reset."""
    reset_at, target = _reset_at(history), _target(history)
    stored = (
        event.at for event in _commits(history) if event.at > reset_at and event.details["offset"] == target
    )
    return next(stored, None)


def _commits(history: History) -> list[Event]:
    return history.of(Point.COMMIT_RECEIVED, topic=TOPIC, group=GROUP)


async def _follow(stage: ProcessStage, script: Script, tell: Tell) -> None:
    """Tell of the steps as they come in."""
    told = 0
    while True:
        events = steps(stage.history)
        for event, text in events[told:]:
            tell(script, event.at, text)
        told = max(told, len(events))
        await stage.sleep(_LOOK_EVERY)


def steps(history: History) -> list[tuple[Event, str]]:
    """The events worth telling, in words."""
    told: list[tuple[Event, str]] = []
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
            text = f"consumer: the queue begins at {details['offset']}"
        elif event.kind is Lab.PROCESS_STARTED and event.process == _CONSUMER:
            started += 1
            text = "a consumer starts" if started == 1 else "another consumer starts"
        elif event.kind is Lab.RESET_STARTED:
            text = f"administrator: reset to {details['offset']}"
        else:
            text = _TEXTS.get(event.kind, "")
        if text:
            told.append((event, text))
    return told


_TEXTS: Final = {
    Lab.RESET_ACKNOWLEDGED: "administrator: the reset is acknowledged",
    Lab.PROCESS_KILLED: "the consumer is killed (kill -9)",
    Point.SUSPENDED: "consumer: 220 received, suspended",
    Point.QUEUE_DROPPED: "consumer: the queue is dropped",
    Point.WAIT_OVER: "consumer: the wait of 10 s is over",
    Point.RESULT_DISCARDED: "consumer: a late result is discarded",
}
