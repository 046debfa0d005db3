"""Draws the import tables of docs/architecture.md again, or prints the rooms of one folder as a picture.

Run by ``scripts/draw_imports``; ``scripts/draw_imports broker`` prints the picture of ``broker/`` in Mermaid.
"""

from __future__ import annotations

import sys

from tools.imports.graph import packages
from tools.imports.picture import picture
from tools.imports.tables import write


def main() -> int:
    """Return the exit code."""
    names = [argument.strip("/").replace("/", ".") for argument in sys.argv[1:]]
    unknown = [name for name in names if name not in packages()]
    if unknown:
        print(f"no such folder: {', '.join(unknown)}", file=sys.stderr)
        return 2
    for name in names:
        print(picture(name))
    if not names:
        write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
