"""The tables of docs/architecture.md that say which room of a folder imports which."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tools.imports.graph import ROOT, packages, room_graph

PAGE: Final = ROOT / "docs" / "architecture.md"
BEGIN: Final = "<!-- drawn by ./scripts/draw_imports -->"
END: Final = "<!-- end of what ./scripts/draw_imports draws -->"


def packages_with_rooms() -> list[str]:
    """Return the packages that hold other packages, by name."""
    return sorted({name.rpartition(".")[0] for name in packages()} - {""})


def render() -> str:
    """Return the tables of all packages with rooms, as Markdown."""
    return "\n".join(line for package in packages_with_rooms() for line in _table(package))


def _table(package: str) -> Iterator[str]:
    graph = room_graph(package)
    yield f"### `{package.replace('.', '/')}/`"
    yield ""
    yield "| room | imports, of this folder |"
    yield "|---|---|"
    for room in sorted(graph.keys() & packages() - {package}):
        imported = ", ".join(_label(package, name) for name in sorted(graph[room]))
        yield f"| {_label(package, room)} | {imported or '–'} |"
    yield ""


def _label(package: str, room: str) -> str:
    name = room.removeprefix(f"{package}.")
    return f"`{name}/`" if room in packages() and room != package else f"`{name}`"


def drawn(page: str) -> str:
    """Return a page with the tables between its two marks replaced."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    assert begin
    assert end
    return f"{before}{begin}\n\n{render()}\n{end}{after}"


def write(path: Path = PAGE) -> None:
    """Draw the tables of the page again."""
    path.write_text(drawn(path.read_text()))
