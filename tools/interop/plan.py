"""Which client plays which scenario at which cluster, and what of that CI plays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from tools.interop.clients import CLIENTS, Client
from tools.interop.differences import UNPLAYED
from tools.interop.scenarios import SCENARIOS
from tools.interop.versions import SERVER_4, SERVER_5

V49: Final = "rewindmq-v49"
V53: Final = "rewindmq-v53"
# The real cluster that each of RewindMQ's is compared with.
REFERENCE: Final = {V49: f"rocketmq-{SERVER_4}", V53: f"rocketmq-{SERVER_5}"}
# RewindMQ's clusters that a client meets; it meets their references, too. Where a serialization type is all
# that is new in a client, it meets one release.
MEETS: Final[dict[str, tuple[str, ...]]] = {
    "java-498-json": (V49, V53),
    "java-498-rocketmq": (V49,),
    "java-550-json": (V49, V53),
    "java-550-rocketmq": (V53,),
    "rewindmq-json": (V49,),
    "rewindmq-rocketmq": (V53,),
    "rewindmq-auto": (V49, V53),
    "go": (V49,),
    "node": (V49,),
}
_MEET_BOTH: Final = [name for name, servers in MEETS.items() if len(servers) > 1]


@dataclass(frozen=True)
class Play:
    """One scenario, with one client, at one cluster."""

    client: Client
    server: str
    feature: str

    def __str__(self) -> str:
        return f"{self.client.name}-at-{self.server}-{self.feature}"

    @property
    def reference(self) -> Play | None:
        """The play at the real cluster that this one is compared with; None of a play there."""
        real = REFERENCE.get(self.server)
        return None if real is None else Play(self.client, real, self.feature)

    @property
    def unplayed(self) -> str | None:
        """What the library lacks at this very cluster, where it cannot work there."""
        return UNPLAYED.get((self.client.name, self.feature, self.server))

    @property
    def is_chosen(self) -> bool:
        """Whether CI plays it.

        Each client plays every scenario once, at one real release and at the profile that imitates it. The
        clients that meet both releases change between them from scenario to scenario, every other client the
        other way round: so each client meets each release that it has, and each release each scenario.
        """
        return self.server in _chosen_servers(self.client, self.feature)


def _chosen_servers(client: Client, feature: str) -> tuple[str, str]:
    able = [
        ours
        for ours in MEETS[client.name]
        if not any(Play(client, server, feature).unplayed for server in (ours, REFERENCE[ours]))
    ]
    turn = list(SCENARIOS).index(feature) + _MEET_BOTH.index(client.name) if len(able) > 1 else 0
    ours = able[turn % len(able)]
    return ours, REFERENCE[ours]


def plays() -> list[Play]:
    """Everything there is, client by client."""
    return [
        Play(client, server, feature)
        for client in CLIENTS
        for ours in MEETS[client.name]
        for server in (ours, REFERENCE[ours])
        for feature in SCENARIOS
    ]


def with_references(asked: Iterable[Play]) -> list[Play]:
    """The plays asked for, and those they are compared with; each once."""
    both = (play for one in asked for play in (one, one.reference) if play is not None)
    return list(dict.fromkeys(both))
