"""Loads the native kernels from Cargo's folder, if they are built."""

from __future__ import annotations

import importlib.util
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from typing import Any, Final

import pytest

from rewindmq.protocol.remoting.speedups import SpeedupsModule
from tests.support.repository import ROOT

_FOLDER: Final = ROOT / "speedups"
_LIBRARY: Final = _FOLDER / "target/release/librewindmq_speedups.so"
_NAME: Final = "rewindmq_speedups"


@pytest.fixture(scope="session")
def library() -> Path:
    """The built extension module."""
    if not _LIBRARY.exists():
        pytest.skip("the native kernel was not tested: ./scripts/build_speedups builds it, with Rust's cargo")
    sources = [_FOLDER / "Cargo.toml", _FOLDER / "Cargo.lock", *(_FOLDER / "src").glob("*.rs")]
    if max(path.stat().st_mtime for path in sources) > _LIBRARY.stat().st_mtime:
        pytest.fail("the native kernel is older than its sources: run ./scripts/build_speedups")
    return _LIBRARY


@pytest.fixture(scope="session")
def speedups(library: Path) -> SpeedupsModule:
    """The built extension module, loaded."""
    spec = importlib.util.spec_from_loader(_NAME, ExtensionFileLoader(_NAME, str(library)))
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kernels: SpeedupsModule = module
    return kernels
