"""Types of the fixtures that look at a cluster from outside."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from tests.support.processes import Watched

Watch = Callable[[Iterable[int]], Watched]
ProcessesOf = Callable[[Path], list[str]]
BrokersAt = Callable[[str, set[str]], Awaitable[dict[str, str]]]
