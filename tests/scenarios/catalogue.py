"""The scenarios of the behaviour matrix, and the modes each has to be shown in.

A mode is a profile, with ``c`` (classic) or ``s`` (server-side) where the reset mode matters too. A test
shows a scenario by ``@pytest.mark.scenario("B19", "v42", "v49", "v53")``, and says in words what it is.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

_ALL: Final = "v42 v49 v53"
_CLASSIC: Final = "v42 v49 v53c"
_RESETS: Final = "v42 v49 v53c v53s"

_REQUIRED: Final = {
    # Name server.
    "A01": "v42 v49",
    "A02": "v53",
    **dict.fromkeys(("A03", "A05", "A06", "A06b", "A09", "A11"), _ALL),
    **dict.fromkeys(("A07", "A08"), "v49 v53"),
    # Broker.
    **dict.fromkeys(("B01", "B02", "B03", "B04", "B05", "B06", "B07", "B08", "B10", "B12", "B13"), _ALL),
    **dict.fromkeys(("B14", "B15", "B16", "B17", "B19", "B21", "B22", "B24", "B25", "B26"), _ALL),
    "B18": "v53",
    **dict.fromkeys(("B28", "B29"), _ALL),
    "B30": "v49 v53",
    # Client.
    **dict.fromkeys(("C01", "C02", "C03", "C05", "C06", "C07", "C08", "C10", "C11", "C16", "C19"), _ALL),
    "C13": "v49 v53",
    "C14": "v42 v49",
    "C15": "v53",
    "C18": "v42 v49",
    "C20": "v49 v53",
    # Resets.
    **dict.fromkeys(("D01", "D02", "D05", "D10", "D11", "D12", "D14", "D22", "D31"), _CLASSIC),
    **dict.fromkeys(("D03", "D07", "D08", "D19", "D20", "D21"), _RESETS),
    "D06": "v42 v49 v53s",
    "D15": "v49 v53s",
    "D17": "v49",
    "D33": "v49",
    **dict.fromkeys(
        ("D16", "D23", "D24", "D25", "D26", "D27", "D28", "D29", "D30", "D34"),
        "v53s",
    ),
    # Races.
    "E01": "v42 v49",
    **dict.fromkeys(("E02", "E03", "E04"), "v49"),
    **dict.fromkeys(("E05", "E07", "E08", "E17", "E18", "E26"), _CLASSIC),
    **dict.fromkeys(("E10", "E11"), "v42 v49"),
    "E12": "v42",
    "E15": "v42",
    **dict.fromkeys(("E16", "E19", "E20", "E27"), "v49"),
    **dict.fromkeys(("E21", "E23", "E25"), "v53s"),
    "E28": "fenced",
    "E30": "fenced",
}

REQUIRED: Final = MappingProxyType({name: frozenset(modes.split()) for name, modes in _REQUIRED.items()})
