"""Counts lines, files, words, functions, classes and names of one commit."""

from __future__ import annotations

import ast
import subprocess
import tarfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Final

# Top-level folders with code that is neither the product's nor its tests'.
_OTHER: Final = frozenset({"bench", "docs", "examples", "findings", "scripts", "tools"})
_TESTS: Final = "tests"


class RevisionError(Exception):
    """A commit that git does not know."""


@dataclass(frozen=True, slots=True)
class Largest:
    """The largest function or class so far: its name, where it is, and its size."""

    size: int = 0
    name: str = ""

    def __str__(self) -> str:
        return f"{self.size}: `{self.name}`" if self.name else "0"


@dataclass(slots=True)
class SizeFigures:
    """What one commit has.

    Attributes:
        product_lines, test_lines: of Python files; blank lines count.
        words: with a letter or digit, in Markdown files; tables and code are included.
        function: the product's with the most lines, nested functions included.
        fields: the product's class with the most attributes that its body or its ``__init__`` names.
        collisions: public classes at the top of several modules, tests and tools included.
    """

    product_lines: int = 0
    test_lines: int = 0
    product_files: int = 0
    test_files: int = 0
    words: int = 0
    function: Largest = field(default_factory=Largest)
    fields: Largest = field(default_factory=Largest)
    collisions: tuple[str, ...] = ()


def count(root: Path, revision: str) -> SizeFigures:
    """Count the files of a commit.

    Raises:
        RevisionError: git does not know the commit, or ``root`` is no repository.
    """
    figures = SizeFigures()
    classes: Counter[str] = Counter()
    for path, text in _files(root, revision):
        if path.suffix == ".md":
            figures.words += sum(any(map(str.isalnum, word)) for word in text.split())
            continue
        tree = ast.parse(text, str(path))
        classes.update(
            node.name
            for node in tree.body
            if isinstance(node, ast.ClassDef) and not node.name.startswith(("_", "Test"))
        )
        lines = len(text.splitlines())
        if path.parts[0] == _TESTS:
            figures.test_files += 1
            figures.test_lines += lines
        elif path.parts[0] not in _OTHER:
            figures.product_files += 1
            figures.product_lines += lines
            _measure(figures, path, tree)
    figures.collisions = tuple(sorted(name for name, times in classes.items() if times > 1))
    return figures


def _files(root: Path, revision: str) -> Iterator[tuple[PurePosixPath, str]]:
    """Yield the Python and Markdown files of a commit; links to folders are not followed."""
    command = ["git", "archive", "--format=tar", "--end-of-options", revision]
    archive = subprocess.run(command, cwd=root, capture_output=True, check=False)
    if archive.returncode:
        error = archive.stderr.decode(errors="replace").strip().partition("\n")[0]
        raise RevisionError(f"git cannot read {revision!r}: {error}")
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
        for member in files:
            path = PurePosixPath(member.name)
            content = files.extractfile(member) if member.isreg() and path.suffix in (".py", ".md") else None
            if content is not None:
                yield path, content.read().decode()


def _measure(figures: SizeFigures, path: PurePosixPath, tree: ast.Module) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            size = (node.end_lineno or node.lineno) - node.lineno + 1
            if size > figures.function.size:
                figures.function = Largest(size, f"{path}:{node.name}")
        elif isinstance(node, ast.ClassDef):
            size = len(_fields(node))
            if size > figures.fields.size:
                figures.fields = Largest(size, f"{path}:{node.name}")


def _fields(node: ast.ClassDef) -> set[str]:
    """Return the annotated names of a class's body, and the attributes of ``self`` that ``__init__`` sets."""
    found = {
        one.target.id
        for one in node.body
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
    }
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and method.name == "__init__":
            found |= {
                one.attr
                for one in ast.walk(method)
                if isinstance(one, ast.Attribute)
                and isinstance(one.ctx, ast.Store)
                and isinstance(one.value, ast.Name)
                and one.value.id == "self"
            }
    return found
