"""The cells of the table: all of them, and those that CI plays."""

from __future__ import annotations

from typing import Final

from interop.races.cell import Cell
from interop.races.cluster import ClusterKind

from rewindmq.protocol.reset_mode import ResetMode

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
SERVER: Final = ("S1", "S2", "S3", "S4", "S5", "S6", "S7", "R1", "R2", "R6", "SEED", "R11", "PULL")
# The real broker that each release of the client is played at, and what of ours imitates it.
_CLASSIC_AT: Final = {
    "4.2.0": ("4.2.0", "v42"),
    "4.8.0": ("4.8.0", "v49"),
    "4.9.4": ("4.9.4", "v49"),
    "5.1.4": ("5.1.4", "v53"),
    "5.3.3": ("5.3.3", "v53"),
}
_SERVER_AT: Final = {"4.9.4": ("5.3.3", "v53"), "5.3.3": ("5.3.3", "v53"), "5.5.0": ("5.5.0", "v53")}


def _cells(races: tuple[str, ...], at: dict[str, tuple[str, str]], mode: ResetMode) -> list[Cell]:
    found = []
    for client, (real, ours) in at.items():
        for kind in (ClusterKind(True, real, mode), ClusterKind(False, ours, mode)):
            found += [Cell(race, client, kind) for race in races]
    return [cell for cell in found if cell.is_documented]


ALL: Final = [
    *_cells(CLASSIC, _CLASSIC_AT, ResetMode.CLASSIC),
    *_cells(SERVER, _SERVER_AT, ResetMode.SERVER),
]
DEFAULT: Final = ALL
