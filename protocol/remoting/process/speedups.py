"""Finds the optional native kernels; only entry points call it, so simulations stay in Python."""

from __future__ import annotations

import importlib
import os
from typing import Any, Final

import rewindmq
from rewindmq.protocol.remoting.speedups import SpeedupsModule

PURE_VARIABLE: Final = "REWINDMQ_PURE"
_MODULE: Final = "rewindmq_speedups"


def load_speedups() -> SpeedupsModule | None:
    """Return the kernels; None means pure Python. See ``describe_speedups`` for the reasons."""
    return _load()[0]


def describe_speedups() -> str:
    """Return which code a broker of this installation runs, and why, in a few words."""
    return _load()[1]


def _load() -> tuple[SpeedupsModule | None, str]:
    if os.environ.get(PURE_VARIABLE, "") not in ("", "0"):
        return None, f"pure Python, because {PURE_VARIABLE} is set"
    try:
        module: Any = importlib.import_module(_MODULE)
    except ModuleNotFoundError:
        return None, "pure Python"
    except ImportError as error:
        return None, f"pure Python, because rewindmq-speedups cannot be loaded: {error}"
    version = getattr(module, "__version__", "unknown")
    # This code calls only the kernels of its own version.
    if version != rewindmq.__version__:
        return None, f"pure Python, because rewindmq-speedups has version {version}"
    return module, f"with rewindmq-speedups {version}"
