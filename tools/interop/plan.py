"""The plan of the scenarios: which client runs which scenario at which cluster, and which part CI runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from tools.interop.clients import CLIENTS, ClientProgram
from tools.interop.differences import UNPLAYED
from tools.interop.scenarios import SCENARIOS
from tools.interop.versions import SERVER_4, SERVER_5

V49: Final = "rewindmq-v49"
V53: Final = "rewindmq-v53"
# The RocketMQ cluster that each RewindMQ cluster is compared with.
REFERENCE: Final = {V49: f"rocketmq-{SERVER_4}", V53: f"rocketmq-{SERVER_5}"}
# The RewindMQ clusters that a client runs at; it also runs at their references. A client that differs from
# another one only by its serialization type runs at one release.
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
    "spring": (V49, V53),
    "spring-stream": (V49, V53),
    # It cannot read the routes of 4.x: tests/interop/test_rust_routes.py.
    "rust": (V53,),
}
_MEET_BOTH: Final = [name for name, servers in MEETS.items() if len(servers) > 1]


@dataclass(frozen=True)
class Play:
    """One scenario, run with one client at one cluster."""

    client: ClientProgram
    server: str
    feature: str

    def __str__(self) -> str:
        return f"{self.client.name}-at-{self.server}-{self.feature}"

    @property
    def reference(self) -> Play | None:
        """The play at the RocketMQ cluster that this one is compared with; None for a play at RocketMQ."""
        real = REFERENCE.get(self.server)
        return None if real is None else Play(self.client, real, self.feature)

    @property
    def unplayed(self) -> str | None:
        """What the library lacks for this scenario at this cluster, None if it lacks nothing."""
        return UNPLAYED.get((self.client.name, self.feature, self.server))

    @property
    def is_chosen(self) -> bool:
        """Whether CI runs it.

        Each client runs every scenario once, at one RocketMQ release and at the profile that imitates it.
        Clients that support both releases alternate between them from scenario to scenario. Every second
        such client starts with the other release. So each client runs at each of its releases, and each
        release runs each scenario. CI leaves out a client whose driver takes long to build.
        """
        return not self.client.is_slow_to_build and self.server in _chosen_servers(self.client, self.feature)


def _chosen_servers(client: ClientProgram, feature: str) -> tuple[str, str]:
    able = [
        rewindmq
        for rewindmq in MEETS[client.name]
        if not any(Play(client, server, feature).unplayed for server in (rewindmq, REFERENCE[rewindmq]))
    ]
    turn = list(SCENARIOS).index(feature) + _MEET_BOTH.index(client.name) if len(able) > 1 else 0
    rewindmq = able[turn % len(able)]
    return rewindmq, REFERENCE[rewindmq]


def plays() -> list[Play]:
    """Return every play, client by client."""
    return [
        Play(client, server, feature)
        for client in CLIENTS
        for rewindmq in MEETS[client.name]
        for server in (rewindmq, REFERENCE[rewindmq])
        for feature in SCENARIOS
    ]


def with_references(asked: Iterable[Play]) -> list[Play]:
    """Return the given plays and the plays they are compared with, each once."""
    both = (play for one in asked for play in (one, one.reference) if play is not None)
    return list(dict.fromkeys(both))
