"""What a workload was promised, and when: the facts that a restarted broker is judged by."""

from __future__ import annotations

from dataclasses import dataclass, field

from tools.crash_points.journal import JournalDisk


@dataclass(frozen=True, slots=True)
class Attempted:
    """A message is about to be sent, so it may be in the store from now on."""

    topic: str
    body: bytes
    key: str


@dataclass(frozen=True, slots=True)
class AcknowledgedSend:
    """A send was acknowledged."""

    topic: str
    queue_id: int
    offset: int
    body: bytes
    key: str


@dataclass(frozen=True, slots=True)
class Delayed:
    """The send of a delayed message was acknowledged; ``offset`` is that in the schedule topic."""

    level: int
    offset: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Timed:
    """The send of a timer message was acknowledged."""

    body: bytes


@dataclass(frozen=True, slots=True)
class HalfStored:
    """The send of a half message was acknowledged."""

    body: bytes


@dataclass(frozen=True, slots=True)
class Ending:
    """A transaction is about to be committed or rolled back."""

    body: bytes
    commits: bool


@dataclass(frozen=True, slots=True)
class ResetDone:
    """A fenced reset was acknowledged."""

    group: str
    topic: str
    offset: int


@dataclass(frozen=True, slots=True)
class TopicSaved:
    """A topic's settings were acknowledged."""

    topic: str
    queues: int
    is_compacted: bool


@dataclass(frozen=True, slots=True)
class GroupSaved:
    """A group's settings were acknowledged."""

    group: str
    retry_max_times: int


@dataclass(frozen=True, slots=True)
class TopicDropping:
    """A topic is about to be deleted."""

    topic: str


@dataclass(frozen=True, slots=True)
class TopicDropped:
    """The deletion of a topic was acknowledged."""

    topic: str


@dataclass(frozen=True, slots=True)
class Expiring:
    """Old files may be deleted from now on."""


Fact = (
    Attempted
    | AcknowledgedSend
    | Delayed
    | Timed
    | HalfStored
    | Ending
    | ResetDone
    | TopicSaved
    | GroupSaved
    | TopicDropping
    | TopicDropped
    | Expiring
)


class CrashLedger:
    """Facts, each with the number of operations in the journal when it became true."""

    def __init__(self, disk: JournalDisk) -> None:
        self._disk = disk
        self.facts: list[tuple[int, Fact]] = []

    def add(self, fact: Fact) -> None:
        """Note a fact now."""
        self._disk.note()
        self.facts.append((len(self._disk.journal), fact))


@dataclass(slots=True)
class Known:
    """All facts up to a point, by kind.

    Attributes:
        attempts: body to topic and key.
        stored: topic and queue to offset to message.
        resets: group and topic to the number of fenced resets.
        dropped: topics that are being deleted.
        ended: topics that were deleted, and may have been created again.
        gone: bodies of their messages from before.
    """

    attempts: dict[bytes, Attempted] = field(default_factory=dict)
    stored: dict[tuple[str, int], dict[int, AcknowledgedSend]] = field(default_factory=dict)
    delayed: list[Delayed] = field(default_factory=list)
    timed: list[bytes] = field(default_factory=list)
    halves: list[bytes] = field(default_factory=list)
    endings: dict[bytes, bool] = field(default_factory=dict)
    resets: dict[tuple[str, str], int] = field(default_factory=dict)
    topics: dict[str, TopicSaved] = field(default_factory=dict)
    groups: dict[str, GroupSaved] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)
    gone: set[bytes] = field(default_factory=set)
    may_expire: bool = False

    def learn(self, fact: Fact) -> None:  # noqa: C901, PLR0912 - one case for each kind of fact
        """Add one fact."""
        match fact:
            case Attempted():
                self.attempts[fact.body] = fact
            case AcknowledgedSend():
                if self.may_expire and fact.offset == 0:
                    # The queue has started over.
                    self.stored[fact.topic, fact.queue_id] = {}
                self.stored.setdefault((fact.topic, fact.queue_id), {})[fact.offset] = fact
            case Delayed():
                self.delayed.append(fact)
            case Timed():
                self.timed.append(fact.body)
            case HalfStored(body):
                self.halves.append(body)
            case Ending(body, commits):
                self.endings[body] = commits
            case ResetDone(group, topic, _):
                self.resets[group, topic] = self.resets.get((group, topic), 0) + 1
            case TopicSaved(topic):
                self.topics[topic] = fact
            case GroupSaved(group):
                self.groups[group] = fact
            case TopicDropping(topic):
                self.dropped.add(topic)
                self.topics.pop(topic, None)
            case TopicDropped(topic):
                self.dropped.discard(topic)
                self.ended.add(topic)
                for key in [key for key in self.stored if key[0] == topic]:
                    self.gone.update(stored.body for stored in self.stored.pop(key).values())
            case Expiring():
                self.may_expire = True
