"""What a soak is told, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rewindmq.protocol.profile import Profile
from tools.soak.checker import Waits
from tools.soak.rules import GroupRules

QUEUES: Final = 4
# The brokers' delay levels; retries use level 3 first, then 4, 5, ...
DELAY_LEVELS: Final = "10s 30s 10s 20s 30s 30s 30s 30s 30s 30s 30s 30s 30s 30s 30s 30s 30s 30s"
# Of the levels that producers use, before scaling.
DELAY_SECONDS: Final = (10, 30)
# ms, before scaling.
TRANSACTION_CHECK_INTERVAL: Final = 20_000
TRANSACTION_TIME_OUT: Final = 10_000
# What ``--without`` may leave out.
FEATURES: Final = ("orderly", "retries", "delays", "transactions", "resets", "kills")
# Redeliveries of a refused message before it is a dead letter.
MAX_RECONSUME: Final = 3


@dataclass(frozen=True, slots=True)
class Group:
    """A consumer group and its members.

    Attributes:
        role: what its members run, see ``worker``.
        profile: None: that of the cluster.
        reset_mode: how it is reset; None: not at all.
        members: number of consumers before any joins or leaves.
    threads: listeners at the same time in one member; None: the default.
    slow: which part of the listener's calls takes its time. With few threads, messages wait in the member
        then, and a kill finds them pulled and not delivered.
    """

    rules: GroupRules
    role: str = "push"
    profile: Profile | None = None
    reset_mode: str | None = None
    members: int = 2
    threads: int | None = None
    slow: float = 0.01

    @property
    def name(self) -> str:
        return self.rules.name


GROUPS: Final = (
    Group(
        GroupRules("SoakFenced", "cdt", max_reconsume_times=MAX_RECONSUME),
        profile=Profile.EPOCH,
        reset_mode="fenced",
    ),
    Group(GroupRules("SoakClassic", "c", is_lossy=True), reset_mode="classic"),
    Group(GroupRules("SoakServer", "cd", is_lossy=True), reset_mode="server"),
    Group(
        GroupRules("SoakTagged", "ct", tags=frozenset("AB"), max_reconsume_times=MAX_RECONSUME),
        threads=2,
        slow=0.1,
    ),
    Group(
        GroupRules("SoakOrderly", "o", is_orderly=True),
        role="orderly",
        slow=0.05,
        profile=Profile.EPOCH,
        reset_mode="fenced",
    ),
    Group(GroupRules("SoakPull", "c"), role="pull", members=1),
    Group(GroupRules("SoakLite", "c"), role="lite", profile=Profile.EPOCH, reset_mode="fenced"),
)


@dataclass(frozen=True, slots=True)
class SoakOptions:
    """Attributes:
    minutes: how long producers send and processes are killed; the drain comes on top.
    seed: of the schedule; what the machine does between its actions is not repeated.
    rate: messages a second, all producers together.
    directory: of stores, logs and journals.
    without: those of ``FEATURES`` that are left out.
    """

    minutes: float
    seed: int
    time_scale: float
    rate: float
    profile: Profile
    directory: Path
    without: frozenset[str] = frozenset()

    @property
    def journals(self) -> Path:
        return self.directory / "journals"

    @property
    def pause_seconds(self) -> float:
        """Between two actions on average: often enough that a short soak sees each kind."""
        return min(6.0, self.seconds / 60)

    @property
    def groups(self) -> tuple[Group, ...]:
        return tuple(group for group in GROUPS if group.role not in self.without)

    @property
    def seconds(self) -> float:
        return self.minutes * 60

    @property
    def settled(self) -> float:
        """Seconds until memory has to be flat: five minutes of thirty."""
        return self.seconds / 6

    @property
    def waits(self) -> Waits:
        """Bounds for the checker; the real seconds in them are for a busy machine."""
        return Waits(
            # Commits every 5 s, and the broker's file every 5 s.
            commit=int((20 * self.time_scale + 3) * 1_000_000),
            register=int((60 * self.time_scale + 2) * 1_000_000),
            reset=int((60 * self.time_scale + 10) * 1_000_000),
        )

    @property
    def quiet_seconds(self) -> float:
        """When so long nothing was delivered, nothing will be: longer than the longest wait for a message."""
        return 60 * self.time_scale + 6
