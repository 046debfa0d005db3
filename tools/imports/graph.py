"""The import graph of the product, read from the sources, with imports inside functions and for types."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGE: Final = "rewindmq"

# A node of a graph to the nodes that it imports.
Graph = dict[str, set[str]]


@cache
def modules() -> Mapping[str, Path]:
    """Return every module by its name without ``rewindmq.``; a package is its ``__init__.py``."""
    found = {}
    for link in sorted((ROOT / "src" / PACKAGE).iterdir()):
        if link.is_symlink():
            for path in sorted((ROOT / link.name).rglob("*.py")):
                name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
                found[name.removesuffix(".__init__")] = path
    return found


@cache
def packages() -> frozenset[str]:
    """Return the names of the modules that are packages."""
    return frozenset(name for name, path in modules().items() if path.name == "__init__.py")


@cache
def _statements(path: Path) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """Return the import statements of a file. Parsing all files takes seconds, so it is done once."""
    nodes = ast.walk(ast.parse(path.read_text(), str(path)))
    return tuple(node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom))


@cache
def imports_of(path: Path) -> frozenset[str]:
    """Return every name a file imports, wherever in the file; ``from a import b`` gives ``a`` and ``a.b``."""
    found: set[str] = set()
    for node in _statements(path):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        else:
            assert node.level == 0, f"{path}: line {node.lineno}: relative import"
            assert node.module is not None
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return frozenset(found)


def imported_modules(path: Path, known: Iterable[str]) -> set[str]:
    """Return the modules of the product that a file imports.

    ``from package import module`` imports the module alone, ``from package import Name`` the package itself.
    """
    names = set(known)
    found: set[str] = set()
    for node in _statements(path):
        if isinstance(node, ast.Import):
            found.update(alias.name.removeprefix(f"{PACKAGE}.") for alias in node.names)
        elif node.module is not None:
            parent = node.module.removeprefix(f"{PACKAGE}.")
            found.update(
                full if (full := f"{parent}.{alias.name}") in names else parent for alias in node.names
            )
    return found & names


@cache
def module_graph() -> Mapping[str, frozenset[str]]:
    """Return the modules that each module imports."""
    known = modules()
    return {name: frozenset(imported_modules(path, known) - {name}) for name, path in known.items()}


def child_of(package: str, module: str) -> str | None:
    """Return the child of a package that holds a module: a sub-package, a module, or the package's own file.

    None for a module outside the package.
    """
    if module == package:
        return module
    if not module.startswith(f"{package}."):
        return None
    return f"{package}.{module.removeprefix(f'{package}.').partition('.')[0]}"


def child_graph(package: str) -> Graph:
    """Return which children of a package import which others."""
    graph: Graph = {}
    for module, imported in module_graph().items():
        child = child_of(package, module)
        if child is not None:
            others = {child_of(package, name) for name in imported} - {None, child}
            graph.setdefault(child, set()).update(name for name in others if name is not None)
    return graph


def circles(graph: Graph) -> list[list[str]]:
    """Return the groups of nodes that import each other, directly or through others (Tarjan)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        order[node] = lowest[node] = len(order)
        stack.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in order:
                visit(other)
            if other in stack:
                lowest[node] = min(lowest[node], lowest[other])
        if lowest[node] == order[node]:
            cut = stack.index(node)
            group = sorted(stack[cut:])
            del stack[cut:]
            if len(group) > 1:
                found.append(group)

    for node in sorted(graph):
        if node not in order:
            visit(node)
    return found
