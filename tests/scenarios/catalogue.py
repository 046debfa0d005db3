"""The scenarios of docs/spec/scenarios.md, and the modes each has to be shown in.

A mode is a profile, with ``c`` (classic) or ``s`` (server-side) where the reset mode matters too. A test
shows a scenario by ``@pytest.mark.scenario("B19", "v42", "v49", "v53")``, and says in words what it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "spec" / "scenarios.md"

_ROW: Final = re.compile(r"^\| ([A-E]\d\d[a-z]?) \| ([\w ]+) \|", re.MULTILINE)


def _required() -> Mapping[str, frozenset[str]]:
    rows = _ROW.findall(PAGE.read_text())
    assert len({name for name, _ in rows}) == len(rows), "a scenario has two lines"
    return MappingProxyType({name: frozenset(modes.split()) for name, modes in rows})


REQUIRED: Final = _required()
