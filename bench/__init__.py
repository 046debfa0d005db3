"""Benchmarks: ``./scripts/bench`` runs them and prints one table."""

from __future__ import annotations

import sys
from pathlib import Path

# The harness of the interoperability suite, which starts the real RocketMQ, is the package ``interop``.
sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
