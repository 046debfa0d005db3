"""The rooms of a top-level folder: what they may import of each other, and that nothing is a circle.

docs/architecture.md holds the table. Each room has a row and imports exactly the rooms that the row names.
Imports for type checkers count.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Final

import pytest

from tests.support.imports import PACKAGE, imports_of, modules_in
from tests.support.repository import ROOT

# Top-level folders that are divided into rooms.
FOLDERS: Final = ("client",)
# Rooms whose files are all of one kind, as many as there are.
OF_ONE_KIND: Final = {"client/admin/commands"}
MOST_FILES: Final = 20

_ROW: Final = re.compile(r"^\| `(\w+)/(\w+)/` \| [^|]+ \| ([^|]+) \|$", re.MULTILINE)
PAGE: Final = (ROOT / "docs/architecture.md").read_text()
MODULES: Final = modules_in(FOLDERS)


def table_of(folder: str, page: str) -> dict[str, set[str]]:
    """Room to the rooms it may import, as a page says."""
    rows = [match.groups() for match in _ROW.finditer(page) if match[1] == folder]
    return {room: set(re.findall(r"`(\w+)`", allowed)) for _, room, allowed in rows}


def room_of(module: str) -> str:
    """The room of a module, "" at the folder's root."""
    return "" if is_root(module) else module.split(".")[1]


def is_root(module: str) -> bool:
    """Whether a module stands at the root of its folder."""
    return MODULES[module].parent.parent == ROOT


def imports_within(folder: str) -> dict[str, set[str]]:
    """Module to the modules it imports of the same folder."""
    own = {module for module in MODULES if module.partition(".")[0] == folder}
    return {
        module: {name.removeprefix(f"{PACKAGE}.") for name in imports_of(MODULES[module])} & own - {module}
        for module in own
    }


def rooms_imported(folder: str) -> dict[str, set[str]]:
    """Room to the other rooms that its modules import."""
    found: dict[str, set[str]] = {}
    for module, imported in imports_within(folder).items():
        if not is_root(module):
            own = room_of(module)
            found.setdefault(own, set()).update(room_of(name) for name in imported)
            found[own].discard(own)
    return found


def circle_in(graph: Mapping[str, set[str]]) -> list[str]:
    """The nodes of one circle, in order; empty when there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_room_imports_exactly_the_rooms_that_its_row_names(folder: str) -> None:
    assert table_of(folder, PAGE) == rooms_imported(folder)


@pytest.mark.parametrize("module", [name for name, path in MODULES.items() if path.name != "__init__.py"])
def test_the_page_names_every_module(module: str) -> None:
    *rooms, name = module.split(".")
    if "/".join(rooms) not in OF_ONE_KIND:
        assert f"`{name}`" in PAGE


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_modules_and_no_rooms_import_each_other_in_a_circle(folder: str) -> None:
    assert not circle_in(imports_within(folder))
    assert not circle_in(rooms_imported(folder))


@pytest.mark.parametrize("folder", FOLDERS)
def test_only_the_folder_itself_stands_at_its_root(folder: str) -> None:
    assert [module for module in MODULES if is_root(module)] == [folder]


def test_no_room_is_a_hall() -> None:
    files = Counter(str(path.parent.relative_to(ROOT)) for path in MODULES.values())
    assert not [room for room, count in files.items() if count > MOST_FILES and room not in OF_ONE_KIND]


def test_a_circle_is_found_and_a_row_is_read() -> None:
    assert set(circle_in({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}})) == {"a", "b", "c"}
    page = "| `x/a/` | things | – |\n| `x/b/` | others | `a`, `c` |\n| `y/b/` | more | `a` |\n"
    assert table_of("x", page) == {"a": set(), "b": {"a", "c"}}
