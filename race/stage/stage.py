"""What a scenario may ask of the stage it is played on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Protocol

from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.history import Event, History, Kind
from rewindmq.race.proxy.pattern import FramePattern, Hold

TOPIC: Final = "RaceTopic"
GROUP: Final = "RaceGroup"
BROKER: Final = "broker-a"


def consumer_process(member: str) -> str:
    """What the process of a member is called in the history."""
    return f"consumer-{member}"


def reader_process(reader: str) -> str:
    """What a pull consumer of the group is called in the history."""
    return f"reader-{reader}"


@dataclass(frozen=True, slots=True)
class ListenerPlan:
    """How a member's listener behaves.

    Attributes:
        seconds: protocol seconds each message takes.
        slow: queue offset to seconds, for the first time this member is given that message.
        blocked: queue offsets whose listener, the first time, returns only when released
            (``Member.release``).
        again: protocol seconds each message takes that this member was given before, unless None.
    """

    seconds: float = 0.0
    slow: Mapping[int, float] = field(default_factory=lambda: MappingProxyType({}))
    blocked: frozenset[int] = frozenset()
    again: float | None = None


AT_ONCE: Final = ListenerPlan()


class Member(Protocol):
    """One consumer of the group, a process of its own (in the simulation: a host of its own)."""

    name: str

    async def stop(self) -> None:
        """Shut down in order."""

    async def kill(self) -> None:
        """End it at once, without a word to anybody."""

    async def suspend(self) -> None: ...

    async def resume(self) -> None: ...

    async def release(self, offset: int) -> None:
        """Let the listener that is blocked on this queue offset return."""


class Reader(Protocol):
    """A pull consumer of the group: its application asks for messages, and keeps the offsets."""

    name: str

    async def pull(self, offset: int, *, queue: int = 0, broker: str = BROKER) -> int:
        """Ask once, without waiting for messages; returns where to go on."""

    async def commit(self, offset: int, *, queue: int = 0, broker: str = BROKER) -> None:
        """Store an offset, whichever it is."""

    async def stop(self) -> None:
        """Leave the group."""


class Application(Protocol):
    """A lite pull consumer of the group: it pulls ahead, and its application polls."""

    name: str

    async def poll(self, count: int) -> None:
        """Until that many messages have come, in whole batches."""

    async def commit(self, *, queue: int = 0, broker: str = BROKER) -> None:
        """Store at once what was polled."""

    async def stop(self) -> None:
        """Leave the group; what is noted is stored."""


class Stage(Protocol):
    """One topic with ``queues`` queues on each broker, one group, and everybody who talks to them.

    Every wait is in protocol seconds; on a scaled stage they pass faster. ``RaceError`` is raised where
    something waited for does not happen.

    Attributes:
        profile: of the consumers; servers imitate its release.
        knows_epochs: whether the consumers' pulls and commits carry epochs.
        mode: how ``reset`` resets.
        history: what happened so far.
        is_held: time passes too fast to be relied on: the order that matters has to be enforced with
            ``hold`` and ``release``. Elsewhere waits are kept, and natural timing can do it.
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
        members: int = 1,
        broker_config: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """Start the name server and the brokers ``broker-a``, ``broker-b``, ..., and create the topic.

        Args:
            members: how many will be started, so that their processes can load at the same time.
            broker_config: further keys of ``broker.conf``, as RocketMQ spells them.
        """

    async def sleep(self, seconds: float) -> None: ...

    async def send(self, count: int, *, queue: int = 0, broker: str = BROKER, tag: str = "") -> None:
        """Send messages, no two of one queue stored in the same millisecond (``MESSAGE_SENT`` each)."""

    async def member(
        self,
        name: str,
        *,
        listener: ListenerPlan = AT_ONCE,
        tags: str = "*",
        options: Mapping[str, Any] = MappingProxyType({}),
    ) -> Member:
        """Start a consumer of the group and wait until the brokers know it.

        Args:
            name: ``A``, ``B``, ...; its process in the history is ``consumer-A``.
            options: keyword arguments of ``PushConsumer``, plain values or texts; ``orderly`` besides.
        """

    async def reader(self, name: str) -> Reader:
        """Have a pull consumer join the group and wait until the brokers know it.

        Like any member it is counted when queues are allocated, which goes by the order of names.

        Args:
            name: its process in the history is ``reader-<name>``.
        """

    async def application(self, name: str) -> Application:
        """Have a lite pull consumer of the stage's profile join the group, see ``reader``."""

    async def reset(
        self,
        offset: int,
        *,
        queue: int = 0,
        broker: str = BROKER,
        wait: bool = True,
        is_direct: bool = False,
    ) -> None:
        """Rewind (or move on) the group: 105, then 222 to every broker of the topic.

        The timestamp sent is the store time of the message at ``offset`` of that queue, -1 for its end.
        Records ``RESET_STARTED``, then ``RESET_ACKNOWLEDGED`` with the ``targets`` answered or
        ``RESET_REFUSED``.

        Args:
            wait: False returns when 222 is on its way.
            is_direct: instead, the administrator writes the offsets past the consumers, with 15
            (docs/spec/reset.md D.8).
        """

    async def stored(self, *, queue: int = 0, broker: str = BROKER) -> int:
        """The group's stored offset as an administrator sees it (208); noted as STORED_OFFSET.

        A queue without one shows 0, as in RocketMQ.
        """

    async def kill_broker(self, name: str = BROKER) -> None: ...

    async def start_broker(self, name: str = BROKER) -> None:
        """Start a broker that was killed again, at its address and over its store."""

    def hold(self, pattern: FramePattern, *, member: str) -> Hold:
        """Catch frames between a member and the servers, from now on.

        Best asked for before the member starts: in real time only members that have a hold then go through
        a proxy.

        Raises:
            RaceError: the member runs already, and not through a proxy.
        """

    def hold_stall(self, kind: Kind, *, member: str, **wanted: Any) -> Hold:
        """Stop a member at a stall point (``Runtime.stall``), the next time details match.

        Raises:
            RaceError: this stage cannot (a client that is not ours).
        """

    async def until(self, kind: Kind, *, seconds: float = 60.0, count: int = 1, **wanted: Any) -> Event:
        """Wait until the history holds ``count`` events of this kind whose details match ``wanted``.

        ``process`` among them means the event's process. Those that happened before count too.
        """
