"""Places labels so that they do not overlap."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

# Width of a character at 11 px; the widest of the common monospaced fonts take 0.602 em.
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
    """Places labels and remembers the occupied areas.

    Args:
        width: width of the drawing in pixels; labels stay inside it.
    """

    def __init__(self, width: float) -> None:
        self._width = width
        self._taken: list[Box] = []

    def block(self, box: Box) -> None:
        """Keep an area free of labels."""
        self._taken.append(box)

    def put(
        self, text: str, places: Iterable[tuple[float, float]], *, must: bool
    ) -> tuple[float, float] | None:
        """Take the first of ``places`` (left end, baseline) with room for ``text``.

        Returns:
            Left end and baseline. Without room, the first of ``places`` if the label ``must`` be written,
            else None.
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
