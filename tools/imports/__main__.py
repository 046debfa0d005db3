"""Draws the import tables of docs/packages.md again, or prints the packages of one folder as a picture.

``scripts/draw_imports`` runs it. ``scripts/draw_imports broker`` prints the picture of ``broker/`` in
Mermaid. ``scripts/draw_imports --circles --at fcef8ae client`` prints the circles of ``client/`` at an
earlier commit.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path

from tools.imports.graph import ROOT, packages
from tools.imports.picture import picture
from tools.imports.tables import write


def main() -> int:
    """Run the command and return the exit code."""
    parser = argparse.ArgumentParser(prog="draw_imports", description=__doc__)
    parser.add_argument(
        "folders",
        nargs="*",
        metavar="FOLDER",
        help="print the picture of this folder; without a folder, draw the page again",
    )
    parser.add_argument(
        "--circles",
        action="store_true",
        help="show only modules that import themselves through others",
    )
    parser.add_argument("--at", metavar="COMMIT", help="read the sources of this commit")
    arguments = parser.parse_args()
    if arguments.at is not None:
        return _at(arguments.at, [word for word in sys.argv[1:] if word not in ("--at", arguments.at)])
    names = [folder.strip("/").replace("/", ".") for folder in arguments.folders]
    unknown = [name for name in names if name not in packages()]
    if unknown:
        print(f"no such folder: {', '.join(unknown)}", file=sys.stderr)
        return 2
    for name in names:
        print(picture(name, only_circles=arguments.circles))
    if not names:
        write()
    return 0


def _at(commit: str, words: list[str]) -> int:
    """Run today's command over the sources of a commit."""
    if not any(not word.startswith("-") for word in words):
        print("--at needs a folder: the page is drawn from today's sources only", file=sys.stderr)
        return 2
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode:
        print(archive.stderr.decode().strip(), file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=BytesIO(archive.stdout)) as sources:
            sources.extractall(folder, filter="data")
        tools = Path(folder) / "tools"
        shutil.rmtree(tools, ignore_errors=True)
        shutil.copytree(ROOT / "tools" / "imports", tools / "imports")
        (tools / "__init__.py").touch()
        return subprocess.run(
            [sys.executable, "-m", "tools.imports", *words], cwd=folder, check=False
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
