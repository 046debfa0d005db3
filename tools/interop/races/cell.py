"""A cell of the table: a race, a client release and a cluster; with the losses that the catalogue claims."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.scenario.catalogue import SCENARIOS
from rewindmq.race.scenario.scenario import KEPT, Loss, Scenario
from tools.interop.races.cluster import ClusterKind
from tools.interop.races.race_driver import number

# Claims of the documentation for releases between those that profiles imitate.
_CLAIMED: Final[dict[tuple[str, str], frozenset[Loss]]] = {
    # Before 4.9.0, resets were not serialised. Before 4.9.1, shutdowns did not wait for them.
    ("R5", "4.8.0"): frozenset({Loss.L3}),
    ("R8", "4.8.0"): frozenset({Loss.L2}),
    # Since 5.0.0 only "not found" means that no offset is stored.
    ("ERR14", "5.1.4"): KEPT,
}
# Losses that may occur as well. R5: the earlier of two overlapping replays passes the later target, so the
# later reset looks applied before it is. R4: a zombie's commit may come before or after the query of the
# offset.
_BESIDE: Final[dict[str, frozenset[Loss]]] = {
    "R5": frozenset({Loss.L0, Loss.L1}),
    "R4": frozenset({Loss.L0, Loss.L1, Loss.L2}),
}
# Consumers that are killed have a JVM of their own; a broker that is killed has a cluster of its own.
KILLS_CONSUMERS: Final = frozenset({"R8-KILL", "BROADCAST"})
KILLS_BROKER: Final = frozenset({"R11", "S3"})


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of the table.

    Attributes:
        race: its id in the catalogue.
        client: release of the Java client.
    """

    race: str
    client: str
    cluster: ClusterKind

    def __str__(self) -> str:
        return f"{self.race}-{self.client}-at-{self.cluster}"

    @property
    def scenario(self) -> Scenario:
        return SCENARIOS[self.race]

    @property
    def profile(self) -> Profile:
        """Return RewindMQ's profile that imitates that client."""
        release = number(self.client)
        if release < (4, 9):
            return Profile.V42
        return Profile.V49 if release < (5, 2) else Profile.V53

    @property
    def claimed(self) -> frozenset[Loss]:
        """The losses that the catalogue claims for the profile nearest to the release."""
        known = _CLAIMED.get((self.race, self.client))
        return known if known is not None else self.scenario.cases[self.profile, self.cluster.mode]

    def agrees(self, losses: frozenset[Loss]) -> bool:
        """True if the observed losses agree with the claimed losses."""
        beside = _BESIDE.get(self.race, frozenset()) if self.claimed else frozenset()
        if self.cluster.mode is ResetMode.SERVER:
            # As in race S1: until the client applies the reset, its timer may commit the old offset.
            beside |= {Loss.L0}
        certain = self.claimed - beside or self.claimed
        return certain <= losses <= self.claimed | beside

    @property
    def is_documented(self) -> bool:
        return (self.profile, self.cluster.mode) in self.scenario.cases


def losses_text(losses: frozenset[Loss]) -> str:
    return "kept" if losses == KEPT else " ".join(sorted(losses))
