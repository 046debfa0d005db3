"""The tables and pictures of docs/packages.md: what each folder holds and imports."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tools.imports.graph import ROOT, child_graph, modules, packages
from tools.imports.picture import picture

PAGE: Final = ROOT / "docs" / "packages.md"

_TABLE: Final = re.compile(
    r"<!-- packages of (?P<folder>[\w/]+), drawn by \./scripts/draw_imports -->\n.*?<!-- end of packages -->",
    re.DOTALL,
)
_PICTURE: Final = re.compile(
    r"<!-- picture of (?P<folder>[\w/]+), drawn by \./scripts/draw_imports -->\n.*?<!-- end of picture -->",
    re.DOTALL,
)
_ASIDE: Final = re.compile(r" \([^)]*\)")


def divided() -> list[str]:
    """Return the packages that contain two sub-packages or more, by name."""
    parents = [name.rpartition(".")[0] for name in packages()]
    return sorted({parent for parent in parents if parent and parents.count(parent) > 1})


def drawn_folders(page: str) -> list[str]:
    """Return the packages whose tables a page has, in its order."""
    return [match["folder"].replace("/", ".") for match in _TABLE.finditer(page)]


def drawn(page: str) -> str:
    """Return a page with its tables and pictures drawn again."""
    page = _TABLE.sub(lambda match: _block(match["folder"]), page)
    return _PICTURE.sub(lambda match: _picture(match["folder"]), page)


def write(path: Path = PAGE) -> None:
    """Draw the tables and pictures of the page again."""
    path.write_text(drawn(path.read_text()))


def _block(folder: str) -> str:
    lines = [
        f"<!-- packages of {folder}, drawn by ./scripts/draw_imports -->",
        *_table(folder.replace("/", ".")),
        "<!-- end of packages -->",
    ]
    return "\n".join(lines)


def _picture(folder: str) -> str:
    lines = [
        f"<!-- picture of {folder}, drawn by ./scripts/draw_imports -->",
        "```mermaid",
        picture(folder.replace("/", ".")),
        "```",
        "<!-- end of picture -->",
    ]
    return "\n".join(lines)


def _table(package: str) -> Iterator[str]:
    graph = child_graph(package)
    yield f"| package of `{package.replace('.', '/')}/` | holds | imports from the same folder |"
    yield "|---|---|---|"
    for child in sorted(graph.keys() & packages() - {package}):
        imported = ", ".join(_label(package, name) for name in sorted(graph[child]))
        yield f"| {_label(package, child)} | {_summary(modules()[child])} | {imported or '–'} |"


def _label(package: str, child: str) -> str:
    name = child.removeprefix(f"{package}.")
    return f"`{name}/`" if child in packages() and child != package else f"`{name}`"


def _summary(path: Path) -> str:
    """Return the first sentence or line of a module's docstring, without asides."""
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    line = _ASIDE.sub("", text.partition("\n")[0]).partition(". ")[0]
    return line.rstrip(".").replace("``", "`").replace("|", "\\|")
