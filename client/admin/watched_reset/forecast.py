"""What a reset will do, queue by queue. Pure: it sends no request.

Source: docs/spec/reset.md D.1, D.2, D.8, D.9; docs/reset.md for fenced mode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from rewindmq.client.admin.watched_reset.broker_rules import BrokerRules
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.reset_mode import ResetMode

# Queues that a sentence names; the others are counted.
_NAMED: Final = 8


@dataclass(frozen=True, slots=True)
class QueueFacts:
    """One queue right before a reset.

    Attributes:
        target: the offset that the reset asks for.
        stored: the group's stored offset; None if it has none.
        is_read, is_written: its id is below the number of read queues, and of write queues.
        is_fenced: the group was reset in fenced mode in it.
        is_owned: False if every consumer told its queues, and none has this one.
    """

    queue: MessageQueue
    target: int
    stored: int | None
    is_read: bool = True
    is_written: bool = True
    is_fenced: bool = False
    is_owned: bool = True

    @property
    def is_due(self) -> bool:
        """True if a reset of this queue would move something."""
        return self.target != (self.stored or 0)


@dataclass(frozen=True, slots=True)
class ResetRequest:
    """What is asked for.

    Attributes:
        mode: None: each broker uses its own.
        force: False moves a queue only back.
        has_offsets: an offset for each queue, instead of a time.
        is_online: a consumer of the group is connected to some broker.
        is_pulling, is_broadcasting: the consumers' type and message model.
    """

    group: str
    mode: ResetMode | None = None
    force: bool = True
    has_offsets: bool = False
    is_online: bool = True
    is_pulling: bool = False
    is_broadcasting: bool = False

    def mode_at(self, rules: BrokerRules) -> ResetMode:
        """Return the mode that the broker will use. RocketMQ's ignores the request's."""
        return rules.mode if self.mode is None or not rules.knows_modes else self.mode


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a reset will do.

    Attributes:
        offsets: where the group is afterwards, in each queue that the reset moves.
        obstacles: why it does not move the others.
    """

    offsets: dict[MessageQueue, int] = field(default_factory=dict)
    obstacles: list[str] = field(default_factory=list)


def forecast(request: ResetRequest, brokers: Sequence[BrokerRules], queues: Iterable[QueueFacts]) -> Forecast:
    """Return what the reset will do.

    Args:
        brokers: sorted by name, as a reset asks them.
        queues: those of the topic; for a reset to offsets, only those with an offset.
    """
    by_broker: dict[str, list[QueueFacts]] = {rules.name: [] for rules in brokers}
    for facts in sorted(queues, key=lambda facts: facts.queue):
        by_broker.setdefault(facts.queue.broker_name, []).append(facts)
    if request.has_offsets:
        return _of_offsets(request, brokers, by_broker)
    found = Forecast()
    fenced: list[str] = []
    for number, rules in enumerate(brokers):
        here = by_broker[rules.name]
        mode = request.mode_at(rules)
        if (refusal := _REFUSALS[mode](request, rules, here)) is not None:
            found.obstacles.append(refusal)
            _end(found, rules, brokers[number + 1 :])
            return found
        if mode is ResetMode.CLASSIC and not rules.has_consumers:
            _write(request, brokers, by_broker, found, fenced)
            return found
        if mode is ResetMode.FENCED:
            fenced.append(rules.name)
        _move(request, mode, here, found)
        if request.mode is not None and not rules.knows_modes:
            found.obstacles.append(
                f"{rules.name} knows no modes: it will reset in its own, {mode}, and the command will fail"
            )
            _end(found, rules, brokers[number + 1 :])
            return found
    return found


def _end(found: Forecast, rules: BrokerRules, later: Sequence[BrokerRules]) -> None:
    """Say which brokers get no request, because an error ends the reset."""
    if later:
        names = ", ".join(each.name for each in later)
        found.obstacles.append(f"{rules.name} ends the reset, so {names} will not be asked")


def _refusal_of_classic(request: ResetRequest, rules: BrokerRules, here: Sequence[QueueFacts]) -> str | None:
    if (fenced := _refusal_of_fenced_group(request, here)) is not None:
        return fenced
    written = [facts for facts in here if facts.is_written]
    missing = [facts for facts in written if facts.stored is None]
    if not missing:
        return None
    if len(missing) == len(written):
        return (
            f"group {request.group} has no stored offset in the topic at {rules.name}: in classic mode,"
            " brokers refuse to move it until its consumers have stored some"
        )
    return f"no stored offset in {_names(missing)}: in classic mode, a broker refuses the whole reset"


def _refusal_of_server(request: ResetRequest, rules: BrokerRules, here: Sequence[QueueFacts]) -> str | None:
    if rules.is_slave:
        return _refusal_of_slave(rules)
    if not rules.knows_group:
        return f"{rules.name} does not know group {request.group}, and refuses to move it in server mode"
    if not (request.has_offsets or any(facts.is_read for facts in here)):
        return f"the topic has no read queue at {rules.name}, which refuses the reset"
    return _refusal_of_fenced_group(request, here)


def _refusal_of_fenced(request: ResetRequest, rules: BrokerRules, here: Sequence[QueueFacts]) -> str | None:
    if rules.is_slave:
        return _refusal_of_slave(rules)
    has_offsets = rules.has_offsets or any(facts.stored is not None for facts in here)
    if not (rules.knows_group or has_offsets):
        return f"{rules.name} does not know group {request.group}, and refuses to move it in fenced mode"
    if request.is_broadcasting and rules.has_consumers:
        return "the consumers are broadcasting: in fenced mode, brokers refuse to move them"
    return None if here else f"the topic has no queue at {rules.name}, which refuses the reset"


def _refusal_of_slave(rules: BrokerRules) -> str:
    return f"only a slave of {rules.name} is registered, which refuses the reset"


def _refusal_of_fenced_group(request: ResetRequest, here: Sequence[QueueFacts]) -> str | None:
    if any(facts.is_fenced for facts in here):
        return f"group {request.group} was reset in fenced mode in the topic: only mode fenced moves it now"
    return None


_REFUSALS: Final[
    Mapping[ResetMode, Callable[[ResetRequest, BrokerRules, Sequence[QueueFacts]], str | None]]
] = MappingProxyType(
    {
        ResetMode.CLASSIC: _refusal_of_classic,
        ResetMode.SERVER: _refusal_of_server,
        ResetMode.FENCED: _refusal_of_fenced,
    }
)


def _move(request: ResetRequest, mode: ResetMode, here: Sequence[QueueFacts], found: Forecast) -> None:
    """Add what one broker does once it has accepted the reset."""
    if mode is ResetMode.CLASSIC:
        _notify(request, here, found)
        return
    if mode is ResetMode.SERVER:
        found.offsets.update({facts.queue: facts.target for facts in here if facts.is_read})
        _note_staying(
            found, here, lambda facts: facts.is_read, "a reset at the server moves read queues only"
        )
        return
    for facts in here:
        if request.force or facts.target < (-1 if facts.stored is None else facts.stored):
            found.offsets[facts.queue] = facts.target


def _notify(request: ResetRequest, here: Sequence[QueueFacts], found: Forecast) -> None:
    """Add what the consumers do with a classic reset: each applies it to the queues that it has."""
    if request.is_pulling:
        found.obstacles.append("the consumers pull themselves: in classic mode, they ignore the reset")
        return
    for facts in here:
        if facts.is_written and facts.is_owned:
            found.offsets[facts.queue] = _limited(request, facts, facts.stored or 0)
    _note_staying(found, here, lambda facts: facts.is_written, "a classic reset moves write queues only")
    _note_staying(
        found,
        [facts for facts in here if facts.is_written],
        lambda facts: facts.is_owned,
        "a classic reset does not reach a queue that no consumer has",
    )


def _note_staying(
    found: Forecast, here: Iterable[QueueFacts], moves: Callable[[QueueFacts], bool], reason: str
) -> None:
    """Name the queues that the reset does not move although it asks for another offset."""
    if staying := [facts for facts in here if not moves(facts) and facts.is_due]:
        found.obstacles.append(f"{_names(staying)} will stay: {reason}")


def _write(
    request: ResetRequest,
    brokers: Sequence[BrokerRules],
    by_broker: Mapping[str, Sequence[QueueFacts]],
    found: Forecast,
    fenced: Sequence[str],
) -> None:
    """Add what the client writes if a broker in classic mode knows no consumer.

    Args:
        fenced: brokers that this very reset has moved in fenced mode before.
    """
    for rules in brokers:
        here = by_broker[rules.name]
        read = [facts for facts in here if facts.is_read]
        if rules.name in fenced:
            read = [replace(facts, is_fenced=True) for facts in read if facts.queue in found.offsets]
        if not _write_at(request, rules, read, found):
            return
        _note_staying(
            found, here, lambda facts: facts.is_read, "without consumers, offsets of read queues are written"
        )


def _write_at(
    request: ResetRequest, rules: BrokerRules, queues: Sequence[QueueFacts], found: Forecast
) -> bool:
    """Add the offsets that are written at one broker; return False if it refuses."""
    if rules.checks_commits and not rules.knows_group and queues:
        found.obstacles.append(f"{rules.name} does not know group {request.group}, and refuses its offsets")
        return False
    for facts in queues:
        if facts.is_fenced:
            found.obstacles.append(f"{_names([facts])} was reset in fenced mode: the broker refuses a write")
            return False
        found.offsets[facts.queue] = _limited(request, facts, facts.stored or 0)
    return True


def _limited(request: ResetRequest, facts: QueueFacts, stored: int) -> int:
    return facts.target if request.force else min(facts.target, stored)


def _of_offsets(
    request: ResetRequest, brokers: Sequence[BrokerRules], by_broker: Mapping[str, Sequence[QueueFacts]]
) -> Forecast:
    """Return what a reset to an offset for each queue does, which is carried out queue after queue."""
    found = Forecast()
    if request.mode is ResetMode.CLASSIC:
        found.obstacles.append("a classic reset has a time: a reset to offsets needs mode server or fenced")
        return found
    asked = [rules for rules in brokers if by_broker[rules.name]]
    if request.mode is None and not request.is_online:
        for rules in asked:
            if not _write_at(request, rules, by_broker[rules.name], found):
                break
        return found
    if foreign := [rules.name for rules in asked if not rules.knows_modes]:
        found.obstacles.append(
            f"{', '.join(foreign)} knows no modes: a reset to offsets needs RewindMQ's brokers, or a group"
            " without consumers"
        )
        return found
    for number, rules in enumerate(asked):
        mode = request.mode_at(rules)
        moving = [
            facts for facts in by_broker[rules.name] if request.force or facts.target <= (facts.stored or 0)
        ]
        refusal = (
            "consumers are connected: a reset to offsets needs mode server or fenced"
            if mode is ResetMode.CLASSIC
            else _REFUSALS[mode](request, rules, by_broker[rules.name])
        )
        if refusal is not None and moving:
            found.obstacles.append(refusal)
            _end(found, rules, asked[number + 1 :])
            return found
        found.offsets.update({facts.queue: facts.target for facts in moving})
    return found


def _names(queues: Sequence[QueueFacts]) -> str:
    names = [f"{facts.queue.broker_name}:{facts.queue.queue_id}" for facts in queues]
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} other queues" if more > 0 else "")
