"""Types of the fixtures of cluster tests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from tests.support.processes import Watched

Watch = Callable[[Iterable[int]], Watched]
ProcessesOf = Callable[[Path], list[str]]
BrokersAt = Callable[[str, set[str]], Awaitable[dict[str, str]]]
