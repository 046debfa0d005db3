"""Writes docs/mqadmin.md from docs/compatibility.json: what each command of RocketMQ's mqadmin does here."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
TARGET: Final = ROOT / "docs" / "mqadmin.md"
sys.path.insert(0, str(ROOT))

from tools.interop.mqadmin_cases import V4, V5  # noqa: E402
from tools.interop.mqadmin_commands import COMMANDS  # noqa: E402
from tools.interop.mqadmin_refusals import NOT_RUN, REFUSED  # noqa: E402
from tools.interop.results import FAILS, WORKS, Results, read  # noqa: E402

_PREAMBLE: Final = """\
# RocketMQ's mqadmin at a RewindMQ cluster

`./scripts/generate_mqadmin_doc` writes this page from `docs/compatibility.json`, the results of the
[interop suite](interop.md); do not edit it. The suite runs every command of two releases of `mqadmin`, as
published, at a RewindMQ and at a RocketMQ cluster with the same content, and compares what it prints.
[compatibility.md](compatibility.md#mqadmin) lists each command line.

| tool | RewindMQ | RocketMQ |
|---|---|---|
| 4.9.8 | profile v49 | 4.9.7 |
| 5.5.0 | profile v53 | 5.5.0 |

| word | meaning |
|---|---|
| same | prints the same as with RocketMQ |
| same, note 1 | prints the same, except for what note 1 explains |
| refused, note 1 | the server returns an error; note 1 has the reason |
| not run | no test runs it; the note has the reason |
| failed, not tested | in the last whole run |
| – | this release has no such command |

[admin.md](admin.md) describes RewindMQ's own tool, `rewindmq admin`.
"""
_MODULE: Final = "test_mqadmin"
# The classes of tests of each release: those that begin with this.
_CLASSES: Final = {V4: "Test498", V5: "Test550"}


class _Notes:
    """Numbered reasons, each written once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def cell(self, word: str, *reasons: str) -> str:
        numbers = [self._numbers.setdefault(reason, len(self._numbers) + 1) for reason in reasons]
        return ", ".join([word, *(f"note {number}" for number in sorted(numbers))])

    def lines(self) -> list[str]:
        return [f"{number}. {text}" for text, number in self._numbers.items()]


def render(results: Results) -> str:
    """Return the whole page."""
    notes = _Notes()
    shown = {release: _shown(release, results) for release in COMMANDS}
    names = sorted({name for listed in COMMANDS.values() for name in listed}, key=str.lower)
    rows = [
        f"| `{name}` | {_cell(name, V4, shown, notes)} | {_cell(name, V5, shown, notes)} |" for name in names
    ]
    table = ["| command | 4.9.8 | 5.5.0 |", "|---|---|---|", *rows]
    return "\n".join([_PREAMBLE, "## Commands\n", *table, "", "## Notes\n", *notes.lines(), ""])


def _shown(release: str, results: Results) -> dict[str, list[str]]:
    """Return the results of a release's tests by command, the first word of a test's parameters."""
    found: dict[str, list[str]] = {}
    for function, tests in results.get(_MODULE, {}).items():
        if function.startswith(_CLASSES[release]):
            for parameters, text in tests.items():
                found.setdefault(parameters.partition(" ")[0], []).append(text)
    return found


def _cell(name: str, release: str, shown: Mapping[str, Mapping[str, list[str]]], notes: _Notes) -> str:
    if name not in COMMANDS[release]:
        return "–"
    if name in NOT_RUN:
        return notes.cell("not run", NOT_RUN[name])
    texts = shown[release].get(name, [])
    if not texts:
        return "not tested"
    if FAILS in texts:
        return "failed"
    reasons = [text.removeprefix(f"{WORKS}: ") for text in dict.fromkeys(texts) if text != WORKS]
    is_refused = all(text.startswith(f"{WORKS}: {REFUSED}") for text in texts)
    return notes.cell("refused" if is_refused else "same", *(text.removeprefix(REFUSED) for text in reasons))


if __name__ == "__main__":
    TARGET.write_text(render(read()))
