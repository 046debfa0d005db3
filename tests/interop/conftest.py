"""Lets these tests and ``bench`` import the harness as the package ``interop``."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
