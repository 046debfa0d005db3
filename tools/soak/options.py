"""The options of a soak, and the groups and bounds that follow from them."""

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
# Seconds of the levels that producers use, before scaling.
DELAY_SECONDS: Final = (10, 30)
# ms, before scaling.
TRANSACTION_CHECK_INTERVAL: Final = 20_000
TRANSACTION_TIME_OUT: Final = 10_000
# What ``--without`` can leave out.
FEATURES: Final = ("orderly", "retries", "delays", "transactions", "resets", "kills", "hostile")
# Redeliveries of a refused message before it becomes a dead letter.
MAX_RECONSUME: Final = 3


@dataclass(frozen=True, slots=True)
class SoakGroup:
    """A consumer group and its consumers.

    Attributes:
        role: what its consumers run, see ``worker``.
        profile: None for that of the cluster.
        reset_mode: how the group is reset; None for never.
        consumers: number of consumers before any joins or leaves.
        threads: most listeners at the same time in one consumer; None for the default.
        slow: the share of listener calls that are slow. With few threads, messages then wait in the
            consumer, and a kill hits messages that are pulled but not delivered.
    """

    rules: GroupRules
    role: str = "push"
    profile: Profile | None = None
    reset_mode: str | None = None
    consumers: int = 2
    threads: int | None = None
    slow: float = 0.01

    @property
    def name(self) -> str:
        return self.rules.name


GROUPS: Final = (
    SoakGroup(
        GroupRules("SoakFenced", "cdt", max_reconsume_times=MAX_RECONSUME),
        profile=Profile.EPOCH,
        reset_mode="fenced",
    ),
    SoakGroup(GroupRules("SoakClassic", "c", is_lossy=True), reset_mode="classic"),
    SoakGroup(GroupRules("SoakServer", "cd", is_lossy=True), reset_mode="server"),
    SoakGroup(
        GroupRules("SoakTagged", "ct", tags=frozenset("AB"), max_reconsume_times=MAX_RECONSUME),
        threads=2,
        slow=0.1,
    ),
    SoakGroup(
        GroupRules("SoakOrderly", "o", is_orderly=True),
        role="orderly",
        slow=0.05,
        profile=Profile.EPOCH,
        reset_mode="fenced",
    ),
    SoakGroup(GroupRules("SoakPull", "c"), role="pull", consumers=1),
    SoakGroup(GroupRules("SoakLite", "c"), role="lite", profile=Profile.EPOCH, reset_mode="fenced"),
)


@dataclass(frozen=True, slots=True)
class SoakOptions:
    """The options of one soak.

    Attributes:
        minutes: how long producers send and processes are killed; the drain follows.
        seed: of the schedule; timing between its actions depends on the machine.
        rate: messages a second of all producers together.
        directory: where stores, logs and journals go.
        without: the ``FEATURES`` that are left out.
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
        """Mean time between two actions: so short that even a short soak sees each kind."""
        return min(6.0, self.seconds / 60)

    @property
    def groups(self) -> tuple[SoakGroup, ...]:
        return tuple(group for group in GROUPS if group.role not in self.without)

    @property
    def seconds(self) -> float:
        return self.minutes * 60

    @property
    def settled(self) -> float:
        """Seconds until memory must be flat: five minutes of thirty."""
        return self.seconds / 6

    @property
    def waits(self) -> Waits:
        """Bounds for the checker; the unscaled seconds allow for a busy machine."""
        return Waits(
            # The consumer commits every 5 s, and the broker writes its file every 5 s.
            commit=int((20 * self.time_scale + 3) * 1_000_000),
            register=int((60 * self.time_scale + 2) * 1_000_000),
            reset=int((60 * self.time_scale + 10) * 1_000_000),
        )

    @property
    def quiet_seconds(self) -> float:
        """Seconds without a delivery after which none will follow: longer than any wait for a message."""
        return 60 * self.time_scale + 6
