"""Java's ``BitSet`` as a batch of acks carries it: base64 of its bytes, the lowest bits first."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections.abc import Iterable

from rewindmq.protocol.errors import BodyError


def encode_bits(positions: Iterable[int]) -> str:
    """Return the text of a set with these bits; they are 0 or more."""
    bits = 0
    for position in positions:
        bits |= 1 << position
    return b64encode(bits.to_bytes((bits.bit_length() + 7) // 8, "little")).decode()


def decode_bits(text: str) -> int:
    """Return the set as an integer, whose bit n is the set's. Java accepts a text without padding, too.

    Raises:
        BodyError: the text is no base64.
    """
    try:
        data = b64decode(text.rstrip("=").encode() + b"=" * (-len(text.rstrip("=")) % 4), validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise BodyError(f"BatchAck: the bit set is no base64: {error}") from None
    return int.from_bytes(data, "little")


def positions(bits: int) -> list[int]:
    """Return the positions of the bits that are set, ascending."""
    digits = f"{bits:b}"[::-1]
    found = []
    position = digits.find("1")
    while position >= 0:
        found.append(position)
        position = digits.find("1", position + 1)
    return found
