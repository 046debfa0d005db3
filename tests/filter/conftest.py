"""Lets the tests of this folder import the module beside them; property tests repeat their examples."""

from __future__ import annotations

import sys
from pathlib import Path

from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))
settings.register_profile("rewindmq", derandomize=True, deadline=None, database=None, max_examples=60)
settings.load_profile("rewindmq")
