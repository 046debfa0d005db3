"""Writes docs/compatibility.md from docs/compatibility.json: what works with which client and cluster."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
TARGET: Final = ROOT / "docs" / "compatibility.md"
sys.path.insert(0, str(ROOT))

from tools.interop.clients import CLIENTS, ClientProgram  # noqa: E402
from tools.interop.plan import REFERENCE  # noqa: E402
from tools.interop.results import FAILS, LACKS, WORKS, Results, read  # noqa: E402
from tools.interop.scenarios import SCENARIOS  # noqa: E402

_PREAMBLE: Final = """\
# Compatibility

`./scripts/generate_compatibility_doc` writes this page from `docs/compatibility.json`; do not edit it. The
file has the results of a whole run of the [interop suite](interop.md). A run with other results fails, also
in CI. Every client is unmodified, as published.
"""
_SIGNS: Final = """\
| sign | meaning |
|---|---|
| ✓ | works; the client's results are the same as with RocketMQ's cluster |
| ✓ 1 | works; note 1 explains a difference |
| – | the library does not have this feature |
| ✗ | failed in that run |
| ? | not tested |
"""
# Modules whose cases are listed. For the modules below, the page has only the number of cases.
_LISTED: Final = {
    "test_mqadmin": "mqadmin",
    "test_rewindmq_admin": "`rewindmq admin` at RocketMQ clusters",
    "test_statistics": "Statistics",
    "test_stores": "One store, opened by both kinds of broker",
    "test_deleted_topics": "A topic that was deleted and created again, in a store of both kinds of broker",
    "test_mixed_clusters": "Clusters with both kinds of broker",
    "test_pipeline_at_real_broker": "The pipeline and RocketMQ's stores",
    "test_rust_routes": "rocketmq-client-rust",
    "test_races_for_real": "Races with the official Java client",
}
_COUNTED: Final = {
    "test_bad_input": "Bad input gets the same answer as from RocketMQ",
}
_CLIENTS: Final = "test_clients"


class _Notes:
    """Numbered explanations, each written once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers) + 1)

    def lines(self) -> list[str]:
        return [f"{number}. {text}" for text, number in self._numbers.items()]


def render(results: Results) -> str:
    """Return the whole page."""
    notes = _Notes()
    lines = [_PREAMBLE, _SIGNS]
    for server in (*REFERENCE, *REFERENCE.values()):
        lines += _clients_at(server, results, notes)
    for module, title in _LISTED.items():
        if module in results:
            lines += [f"## {title}\n", *_listed(results[module], notes)]
    counted = [(title, results[module]) for module, title in _COUNTED.items() if module in results]
    if counted:
        lines += ["## Counted\n", "| what | cases | failed |", "|---|---|---|"]
        lines += [_counted(title, functions) for title, functions in counted]
        lines.append("")
    if notes.lines():
        lines += ["## Notes\n", *notes.lines(), ""]
    return "\n".join(lines)


def _clients_at(server: str, results: Results, notes: _Notes) -> list[str]:
    scenarios = results.get(_CLIENTS, {}).get("test_scenario", {})
    like = f", compared with {REFERENCE[server]}" if server in REFERENCE else ""
    clients = [c for c in CLIENTS if any(key.startswith(f"{c.name}-at-{server}-") for key in scenarios)]
    if not clients:
        return []
    rows = [
        [scenario.title, *(_sign(scenarios.get(f"{c.name}-at-{server}-{feature}"), notes) for c in clients)]
        for feature, scenario in SCENARIOS.items()
    ]
    return [f"## Clients at {server}{like}\n", *_table(["", *map(_heading, clients)], rows)]


def _heading(client: ClientProgram) -> str:
    return " ".join(filter(None, (client.title, client.version, client.codec)))


def _listed(functions: dict[str, dict[str, str]], notes: _Notes) -> list[str]:
    """Return a row for each test and case, with a column for each class of tests if there are classes."""
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for function, tests in functions.items():
        kind, _, name = function.rpartition("::")
        for parameters, shown in tests.items():
            rows.setdefault((name, parameters), {})[kind] = shown
    kinds = sorted({kind for row in rows.values() for kind in row})
    lines = [
        [
            _words(name),
            f"`{parameters}`" if parameters else "",
            *(_sign(row.get(kind), notes) for kind in kinds),
        ]
        for (name, parameters), row in sorted(rows.items())
    ]
    return _table(["what", "case", *map(_release, kinds)], lines)


def _words(name: str) -> str:
    words = name.removeprefix("test_").replace("_", " ")
    return words.replace("rocketmq", "RocketMQ").replace("rewindmq", "RewindMQ")


def _release(kind: str) -> str:
    """Return a class's column title: ``5.5.0 resets by consumers`` for ``Test550ResetsByConsumers``."""
    return re.sub(r"^Test(\d)(\d)(\d)", r"\1.\2.\3", re.sub(r"(?<=.)(?=[A-Z][a-z])", " ", kind)).lower()


def _counted(title: str, functions: dict[str, dict[str, str]]) -> str:
    shown = [text for tests in functions.values() for text in tests.values()]
    return f"| {title} | {len(shown)} | {shown.count(FAILS)} |"


def _table(heading: list[str], rows: Iterable[list[str]]) -> list[str]:
    lines = [heading, ["---"] * len(heading), *rows]
    return [*(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines), ""]


def _sign(shown: str | None, notes: _Notes) -> str:
    if shown is None:
        return "?"
    if shown == FAILS:
        return "✗"
    if shown.startswith(LACKS):
        return "–"
    explanation = shown.removeprefix(WORKS).removeprefix(": ")
    return f"✓ {notes.number(explanation)}" if explanation else "✓"


if __name__ == "__main__":
    TARGET.write_text(render(read()))
