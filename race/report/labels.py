"""Puts labels where there is room, the important ones first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

# 11 px of a monospaced font; the widest common ones take 0.602 em.
CHARACTER_PIXELS: Final = 6.65
LINE_PIXELS: Final = 13.0


class Box(NamedTuple):
    """A rectangle."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: Box) -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


class Labels:
    """Keeps what is taken.

    Args:
        width: labels stay between 0 and this.
    """

    def __init__(self, width: float) -> None:
        self._width = width
        self._taken: list[Box] = []

    def block(self, box: Box) -> None:
        """Keep a place free of labels."""
        self._taken.append(box)

    def put(
        self, text: str, places: Iterable[tuple[float, float]], *, must: bool
    ) -> tuple[float, float] | None:
        """The first of ``places`` (left end, baseline) with room for ``text``.

        Returns:
            Where to write it; None when there is no room, unless it ``must`` be written.
        """
        first: tuple[float, float] | None = None
        size = len(text) * CHARACTER_PIXELS
        for left, baseline in places:
            left = min(max(left, 1.0), max(self._width - size, 1.0))
            box = Box(left - 2, baseline - LINE_PIXELS + 2, left + size + 2, baseline + 3)
            if first is None:
                first = (left, baseline)
            if not any(box.overlaps(other) for other in self._taken):
                self._taken.append(box)
                return left, baseline
        return first if must else None
