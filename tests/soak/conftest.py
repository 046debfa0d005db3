"""Lets these tests import the soak as the package ``soak``, as ``scripts/soak`` does."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
