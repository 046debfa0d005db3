"""The tests, and what they share.

An ``assert`` outside a test file shows its values, too: pytest rewrites what is named here before its import.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

_ROOMS: Final = sorted(folder.parent.name for folder in Path(__file__).parent.glob("*/__init__.py"))

pytest.register_assert_rewrite("tools", *(f"tests.{room}" for room in _ROOMS))
