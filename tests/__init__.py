"""The tests and their shared helpers.

pytest rewrites the packages registered here, so a failed ``assert`` in a helper shows its values, too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

_PACKAGES: Final = sorted(folder.parent.name for folder in Path(__file__).parent.glob("*/__init__.py"))

pytest.register_assert_rewrite("tools", *(f"tests.{package}" for package in _PACKAGES))
