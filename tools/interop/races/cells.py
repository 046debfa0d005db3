"""The cells of the table, and the cells that CI runs."""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.reset_mode import ResetMode
from tools.interop.races.cell import KILLS_BROKER, Cell
from tools.interop.races.cluster import ClusterKind

CLASSIC: Final = (
    "SEED",
    "R1",
    "R2",
    "R3a",
    "R3b",
    "R4",
    "R5",
    "R6",
    "R6b",
    "R7",
    "R7b",
    "R8",
    "R8-KILL",
    "R9",
    "R9b",
    "R10",
    "R11",
    "PERSIST",
    "ERR14",
    "UNASSIGNED",
    "ORDERLY",
    "PULL",
    "BROADCAST",
)
SERVER: Final = ("S1", "S2", "S3", "S4", "S5", "S6", "S7", "R1", "R2", "R6", "SEED", "PULL")
# In classic mode the client loses resets, so the clients of every release run at one broker.
_CLASSIC_CLIENTS: Final = ("4.9.4", "4.2.0", "4.8.0", "5.3.3", "5.1.4")
_SERVER_CLIENTS: Final = ("5.3.3", "5.5.0", "4.9.4")
_CLASSIC_AT: Final = (
    ClusterKind(True, "4.9.4", ResetMode.CLASSIC),
    ClusterKind(False, "v49", ResetMode.CLASSIC),
)
_SERVER_AT: Final = (
    ClusterKind(True, "5.3.3", ResetMode.SERVER),
    ClusterKind(False, "v53", ResetMode.SERVER),
)
# Releases between the ones above, classic resets at a 5.x broker, and the newest release.
_BESIDE: Final = (
    *(Cell(race, client, at) for at in _CLASSIC_AT for client in ("4.9.0", "4.9.1") for race in ("R5", "R8")),
    *(Cell(race, "5.3.3", ClusterKind(True, "5.3.3", ResetMode.CLASSIC)) for race in ("R1", "R4", "R6")),
    *(
        Cell(race, "5.5.0", ClusterKind(True, "5.5.0", ResetMode.SERVER))
        for race in ("S1", "S2", "S4", "S6", "S7")
    ),
)


def _cells(races: tuple[str, ...], clients: tuple[str, ...], at: tuple[ClusterKind, ...]) -> list[Cell]:
    """Return the cells for which the documentation states an outcome."""
    found = [Cell(race, client, kind) for kind in at for client in clients for race in races]
    # Each race that kills the broker needs a cluster of its own, so one release is enough.
    return [
        cell
        for cell in found
        if cell.is_documented and (cell.race not in KILLS_BROKER or cell.client == clients[0])
    ]


ALL: Final = [
    *_cells(CLASSIC, _CLASSIC_CLIENTS, _CLASSIC_AT),
    *_cells(SERVER, _SERVER_CLIENTS, _SERVER_AT),
    *_BESIDE,
]
# Each of these races once, in a documented release, at both brokers; all run at the same time.
_ONCE: Final = {
    ("4.9.4", ResetMode.CLASSIC): "SEED R1 R2 R3a R4 R6 R8-KILL R11 ORDERLY PULL",
    ("4.8.0", ResetMode.CLASSIC): "R5 R8",
    ("5.3.3", ResetMode.SERVER): "S1 S2 S3 S4 S6 S7",
}
DEFAULT: Final = [
    cell
    for cell in ALL
    if cell.race in _ONCE.get((cell.client, cell.cluster.mode), "").split()
    and cell.cluster in (*_CLASSIC_AT, *_SERVER_AT)
]
