"""Interfaces that a scenario uses: the stage and the consumers on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Protocol

from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.history import Event, History, Kind
from rewindmq.race.proxy.pattern import FramePattern, HoldHandle

TOPIC: Final = "RaceTopic"
GROUP: Final = "RaceGroup"
BROKER: Final = "broker-a"


def consumer_process(consumer: str) -> str:
    """Return the process name of a push consumer in the history."""
    return f"consumer-{consumer}"


def reader_process(reader: str) -> str:
    """Return the process name of a pull consumer in the history."""
    return f"reader-{reader}"


@dataclass(frozen=True, slots=True)
class ListenerPlan:
    """How a consumer's listener behaves.

    Attributes:
        seconds: protocol seconds each message takes.
        slow: queue offset to seconds, for the first delivery of that message to this consumer.
        blocked: queue offsets whose first delivery blocks the listener until ``StageConsumer.release``.
        again: protocol seconds for each message that this consumer got before; None uses ``seconds``.
    """

    seconds: float = 0.0
    slow: Mapping[int, float] = field(default_factory=lambda: MappingProxyType({}))
    blocked: frozenset[int] = frozenset()
    again: float | None = None


AT_ONCE: Final = ListenerPlan()


class StageConsumer(Protocol):
    """A push consumer of the group, in a process of its own (in the simulation, on a host of its own)."""

    name: str

    async def stop(self) -> None:
        """Shut down in order."""

    async def kill(self) -> None:
        """End the process at once, as SIGKILL does."""

    async def suspend(self) -> None: ...

    async def resume(self) -> None: ...

    async def release(self, offset: int) -> None:
        """Let the listener that blocks on this queue offset return."""


class StageReader(Protocol):
    """A pull consumer of the group: its application pulls messages and keeps the offsets."""

    name: str

    async def pull(self, offset: int, *, queue: int = 0, broker: str = BROKER) -> int:
        """Pull once without waiting for messages; return the next offset."""

    async def commit(self, offset: int, *, queue: int = 0, broker: str = BROKER) -> None:
        """Commit any offset."""

    async def stop(self) -> None:
        """Leave the group."""


class Application(Protocol):
    """A lite pull consumer of the group: it pulls ahead of the application, which polls."""

    name: str

    async def poll(self, count: int) -> None:
        """Poll whole batches until ``count`` messages have come."""

    async def commit(self, *, queue: int = 0, broker: str = BROKER) -> None:
        """Commit the polled position at once."""

    async def stop(self) -> None:
        """Commit the known offsets and leave the group."""


class Stage(Protocol):
    """A cluster with one topic (``queues`` queues on each broker), one group and its clients.

    Every wait is in protocol seconds, which pass faster on a scaled stage. A wait raises ``RaceError`` when
    its event does not come in time.

    Attributes:
        profile: of the consumers; servers imitate its release.
        knows_epochs: True if the consumers' pulls and commits carry epochs.
        mode: the mode of ``reset``.
        history: the events so far.
        is_held: True if time passes too fast to rely on: a scenario must enforce the order with ``hold``
            and ``release``. Otherwise waits are kept, and timing alone can give the order.
    """

    profile: Profile
    knows_epochs: bool
    mode: ResetMode
    history: History
    is_held: bool

    @property
    def now(self) -> float:
        """Protocol seconds since the run began."""

    async def open(
        self,
        *,
        brokers: int = 1,
        queues: int = 1,
        consumers: int = 1,
        broker_config: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """Start the name server and the brokers ``broker-a``, ``broker-b``, ..., and create the topic.

        Args:
            consumers: how many consumers will start, so that their processes can load in parallel.
            broker_config: further keys of ``broker.conf``, as RocketMQ spells them.
        """

    async def sleep(self, seconds: float) -> None: ...

    async def send(self, count: int, *, queue: int = 0, broker: str = BROKER, tag: str = "") -> None:
        """Send messages, one event ``MESSAGE_SENT`` each; each has a store time (ms) of its own."""

    async def consumer(
        self,
        name: str,
        *,
        listener: ListenerPlan = AT_ONCE,
        tags: str = "*",
        options: Mapping[str, Any] = MappingProxyType({}),
    ) -> StageConsumer:
        """Start a push consumer of the group and wait until the brokers know it.

        Args:
            name: ``A``, ``B``, ...; its process in the history is ``consumer-A``.
            options: keyword arguments of ``PushConsumer``, plain values or strings; also ``orderly``.
        """

    async def reader(self, name: str) -> StageReader:
        """Start a pull consumer of the group and wait until the brokers know it.

        The allocation of queues counts it like any consumer, in the order of names.

        Args:
            name: its process in the history is ``reader-<name>``.
        """

    async def application(self, name: str) -> Application:
        """Start a lite pull consumer of the stage's profile; see ``reader``."""

    async def reset(
        self,
        offset: int,
        *,
        queue: int = 0,
        broker: str = BROKER,
        wait: bool = True,
        is_direct: bool = False,
    ) -> None:
        """Reset the group: look up the route, then send INVOKE_BROKER_TO_RESET_OFFSET (222) to every broker.

        The timestamp is the store time of the message at ``offset`` of that queue, or -1 for the queue's end.
        Records ``RESET_STARTED``, then ``RESET_ACKNOWLEDGED`` with the ``targets`` of the answer, or
        ``RESET_REFUSED``.

        Args:
            wait: False returns as soon as the reset request is sent.
            is_direct: True writes the offsets directly with UPDATE_CONSUMER_OFFSET (15) and does not tell
                the consumers (docs/spec/reset.md D.8).
        """

    async def stored(self, *, queue: int = 0, broker: str = BROKER) -> int:
        """Return the group's stored offset from GET_CONSUME_STATS (208) and record ``STORED_OFFSET``.

        As in RocketMQ, a queue without a stored offset shows 0.
        """

    async def kill_broker(self, name: str = BROKER) -> None: ...

    async def start_broker(self, name: str = BROKER) -> None:
        """Start a killed broker again, with its address and its store."""

    def hold(self, pattern: FramePattern, *, consumer: str) -> HoldHandle:
        """Catch frames between a consumer and the servers from now on.

        Call this before the consumer starts: on a stage in real time, only a consumer that has a hold at its
        start runs through a proxy.

        Raises:
            RaceError: the consumer already runs without a proxy.
        """

    def hold_stall(self, kind: Kind, *, consumer: str, **wanted: Any) -> HoldHandle:
        """Stop a consumer at a stall point (``Runtime.failpoint``) the next time its details match.

        Raises:
            RaceError: the consumer is not RewindMQ's, so the stage cannot stop it.
        """

    async def until(self, kind: Kind, *, seconds: float = 60.0, count: int = 1, **wanted: Any) -> Event:
        """Wait until the history holds ``count`` events of this kind whose details match ``wanted``.

        ``process`` in ``wanted`` is the event's process. Earlier events count too.
        """
