"""A set of small non-negative integers that takes one bit for each."""

from __future__ import annotations

from collections.abc import Iterator


class Bitmap:
    """A set of numbers from 0 on; its memory grows to the largest number."""

    __slots__ = ("_bits", "count")

    def __init__(self) -> None:
        self._bits = bytearray()
        self.count = 0

    def add(self, number: int) -> bool:
        """Add a number; return False if it is in the set already."""
        byte, bit = number >> 3, 1 << (number & 7)
        if byte >= len(self._bits):
            self._bits.extend(bytes(byte + 1 - len(self._bits) + 1024))
        if self._bits[byte] & bit:
            return False
        self._bits[byte] |= bit
        self.count += 1
        return True

    def __contains__(self, number: int) -> bool:
        byte = number >> 3
        return byte < len(self._bits) and bool(self._bits[byte] & 1 << (number & 7))

    def as_int(self) -> int:
        """Return all bits as one integer, for ``&``, ``|`` and ``numbers``."""
        return int.from_bytes(self._bits, "little")


def numbers(bits: int) -> Iterator[int]:
    """Yield the positions of the bits that are set, in ascending order."""
    for index, byte in enumerate(bits.to_bytes(bits.bit_length() + 7 >> 3, "little")):
        if byte:
            yield from (index * 8 + bit for bit in range(8) if byte >> bit & 1)
