"""Prints a Markdown table of the repository's size at two commits.

It has lines, files, words of documentation, the largest function, the class with the most fields, and how
many public class names several modules have.

``scripts/compare_size --at fcef8ae`` compares a commit with HEAD.
``scripts/compare_size --at fcef8ae --to main --minutes 29 18`` adds the minutes of CI, which you measured.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from tools.figures.count import RevisionError, SizeFigures, count

_ROOT: Final = Path(__file__).resolve().parents[2]
_COUNTS: Final = {
    "lines of the product": "product_lines",
    "lines of tests": "test_lines",
    "files of the product": "product_files",
    "files of tests": "test_files",
    "words of documentation": "words",
}


def main(words: Sequence[str]) -> int:
    """Print the table; return 2 if git does not know a commit."""
    parser = argparse.ArgumentParser(
        prog="scripts/compare_size", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--at", metavar="COMMIT", required=True, help="the commit before")
    parser.add_argument("--to", metavar="COMMIT", default="HEAD", help="the commit after (default: HEAD)")
    parser.add_argument(
        "--minutes", metavar=("BEFORE", "AFTER"), nargs=2, type=float, help="minutes that CI took at both"
    )
    arguments = parser.parse_args(words)
    try:
        before, after = (count(_ROOT, commit) for commit in (arguments.at, arguments.to))
    except RevisionError as error:
        print(f"compare_size: {error}", file=sys.stderr)
        return 2
    print(*table((arguments.at, arguments.to), before, after, arguments.minutes), sep="\n")
    return 0


def table(
    titles: tuple[str, str], before: SizeFigures, after: SizeFigures, minutes: Sequence[float] | None = None
) -> Iterator[str]:
    """Yield the lines of the table."""
    yield f"| | {titles[0]} | {titles[1]} | change |"
    yield "|---|---:|---:|---:|"
    for title, name in _COUNTS.items():
        yield _row(title, getattr(before, name), getattr(after, name))
    yield f"| lines of the largest function | {before.function} | {after.function} | |"
    yield f"| most fields of a class | {before.fields} | {after.fields} | |"
    yield _row("class names that collide", len(before.collisions), len(after.collisions))
    if minutes is not None:
        yield _row("minutes of CI", *minutes)


def _row(title: str, before: float, after: float) -> str:
    change = f"{100 * (after - before) / before:+.0f} %" if before else "–"
    return f"| {title} | {_text(before)} | {_text(after)} | {change} |"


def _text(number: float) -> str:
    return f"{number:,.1f}".removesuffix(".0")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
