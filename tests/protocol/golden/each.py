"""Tests that try many frames."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

import pytest

from tests.protocol.golden.frames import GoldenFrame


def each(frames: Iterable[GoldenFrame]) -> Callable[[Callable[[GoldenFrame], None]], Callable[..., None]]:
    """Check every frame; all frames of a request code share one test, so thousands of checks stay fast."""
    by_code: dict[int, list[GoldenFrame]] = defaultdict(list)
    for frame in frames:
        by_code[frame.code].append(frame)

    def decorate(check: Callable[[GoldenFrame], None]) -> Callable[..., None]:
        @pytest.mark.parametrize("code", sorted(by_code))
        def test(code: int) -> None:
            for frame in by_code[code]:
                try:
                    check(frame)
                except Exception as error:
                    error.add_note(f"in {frame}")
                    raise

        test.__name__ = check.__name__
        return test

    return decorate
