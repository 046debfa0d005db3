"""The native kernel of ``speedups/``, if it is built."""

from __future__ import annotations

import importlib.util
import os
from functools import cache
from importlib.machinery import ExtensionFileLoader
from typing import Any, Final

from rewindmq.protocol.remoting.speedups import SpeedupsModule
from tests.support.repository import ROOT

FOLDER: Final = ROOT / "speedups"
LIBRARY: Final = FOLDER / "target/release/librewindmq_speedups.so"
# Set by the tests that run other tests once more with the kernel; any text.
VARIABLE: Final = "REWINDMQ_TEST_KERNEL"
NAME: Final = "rewindmq_speedups"


@cache
def load_kernel() -> SpeedupsModule:
    """Load the built extension module. Raise ImportError if it is not built."""
    spec = importlib.util.spec_from_loader(NAME, ExtensionFileLoader(NAME, str(LIBRARY)))
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kernels: SpeedupsModule = module
    return kernels


def kernel_of_this_run() -> SpeedupsModule | None:
    """Return the kernel for the brokers of a stage; None, as in most runs, for pure Python."""
    return load_kernel() if os.environ.get(VARIABLE) else None
