"""The checkout that the tests run in, and the environment of Python processes that import from it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]


def importing_environment() -> dict[str, str]:
    """Return this process's environment with ``tests`` and ``tools`` importable."""
    paths = (str(ROOT), os.environ.get("PYTHONPATH"))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
