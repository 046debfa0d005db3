"""Loads the native kernels from Cargo's folder, if they are built."""

from __future__ import annotations

from pathlib import Path

import pytest

from rewindmq.protocol.remoting.speedups import SpeedupsModule
from tests.support.kernel import FOLDER, LIBRARY, load_kernel


@pytest.fixture(scope="session")
def library() -> Path:
    """The built extension module."""
    if not LIBRARY.exists():
        pytest.skip("the native kernel was not tested: ./scripts/build_speedups builds it, with Rust's cargo")
    sources = [FOLDER / "Cargo.toml", FOLDER / "Cargo.lock", *(FOLDER / "src").glob("*.rs")]
    if max(path.stat().st_mtime for path in sources) > LIBRARY.stat().st_mtime:
        pytest.fail("the native kernel is older than its sources: run ./scripts/build_speedups")
    return LIBRARY


@pytest.fixture(scope="session")
def speedups(library: Path) -> SpeedupsModule:
    """The built extension module, loaded."""
    return load_kernel()
