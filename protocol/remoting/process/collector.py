"""The garbage collector of a server process: start-up makes long-lived objects, which it need not visit."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator
from typing import Final

# A collection visits all objects that are younger than its generation, at about 10,000 a ms on a slow machine,
# and holds the event loop meanwhile. So the first two generations are small: 2 ms and 10 ms at most. The third
# one has all objects since start-up, and its turn comes after 50 million new ones.
_THRESHOLDS: Final = (10_000, 5, 1_000)


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


def tune_collector() -> None:
    """Exclude the objects of start-up from garbage collection, and collect rarely."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
