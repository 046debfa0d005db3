"""The garbage collector of a server process: start-up makes long-lived objects, which it need not visit."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator
from typing import Final

# A collection visits all objects that are younger than its generation, some 10,000 in a ms or two, and holds
# the event loop meanwhile. So the two young generations are small. The old one has all objects since
# start-up, and its turn comes after 50 million new ones.
_THRESHOLDS: Final = (10_000, 2, 1_700)


@contextlib.contextmanager
def loading() -> Iterator[None]:
    """Collect nothing during a ``with`` statement that imports, and never visit what it has loaded.

    Some 450 modules leave 600 objects of garbage; the collections would take a tenth of the time. Nothing
    changes if the program has disabled the collector.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Collect nothing during a ``with`` statement; its objects must be in no cycles.

    Nothing changes if the collector is disabled already.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def tune_collector() -> None:
    """Exclude the objects of start-up from garbage collection, and collect rarely."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
