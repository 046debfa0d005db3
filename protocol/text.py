"""Text of peers: Java's string hash, and the form in which lines, tables and pages show the text."""

from __future__ import annotations

import html
import struct
from collections.abc import Callable, Iterable
from typing import Final

# Starts the fields of a row in some of mqadmin's output. A terminal only moves the cursor to the right.
_TAB: Final = "\t"
# Characters of a text whose hash is remembered. A peer chooses the texts, such as the tags of messages.
MAX_REMEMBERED_LENGTH: Final = 128
MAX_REMEMBERED_HASHES: Final = 65_536


class _Hashes(dict[str, int]):
    """The hashes of short texts that were asked for; it starts over when it is full."""

    def __missing__(self, text: str) -> int:
        value = to_int32(extend_hash(0, text))
        if len(text) <= MAX_REMEMBERED_LENGTH:
            if len(self) >= MAX_REMEMBERED_HASHES:
                self.clear()
            self[text] = value
        return value


remembered_hashes: Final = _Hashes()
# Returns Java's ``String.hashCode``: over UTF-16 code units, ``h = 31 * h + unit`` wrapped to signed 32 bits.
# A look-up in a dict, without a call, because every message with a tag needs it.
java_hash: Final[Callable[[str], int]] = remembered_hashes.__getitem__


def extend_hash(value: int, text: str) -> int:
    """Return the unsigned hash of ``prefix + text``, given the unsigned hash of ``prefix`` (0 for "")."""
    if text.isascii():
        units: bytes | tuple[int, ...] = text.encode()
    else:
        encoded = text.encode("utf-16-be", "surrogatepass")
        units = struct.unpack(f">{len(encoded) // 2}H", encoded)
    for unit in units:
        value = (31 * value + unit) & 0xFFFFFFFF
    return value


def to_int32(value: int) -> int:
    """Return Java's ``int`` with the bits of an unsigned 32-bit number."""
    return value - 0x1_0000_0000 if value & 0x8000_0000 else value


def escape_controls(text: str) -> str:
    r"""Return the text with every character that does not print as an escape: ``\n``, ``\x1b``, ``\u202e``.

    Escaped are control characters, also C1 (``\x80`` to ``\x9f``), line and paragraph separators, characters
    that change the direction of text or have no width, lone surrogates, and all spaces except the plain one
    and the tab. The result is one line that a terminal only prints. Escaping it again changes nothing,
    because a backslash stays as it is.
    """
    # Most texts need no escape, and this check takes no time.
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() or character == _TAB else _escape(character)
        for character in text
    )


def escape_lines(lines: Iterable[str]) -> str:
    """Return the lines as one text, each of them escaped, so that it has as many lines as there are items."""
    return "\n".join(map(escape_controls, lines))


def escape_html(text: str) -> str:
    """Return the text for a page: control characters escaped, and HTML's own."""
    return html.escape(escape_controls(text))


def escape_json(text: str) -> str:
    r"""Return a JSON text with every character that does not print as ``\uXXXX``; line feeds stay.

    The text must be valid JSON, where such characters occur only inside strings, except line feeds.
    """
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() or character == "\n" else _escape_in_json(character)
        for character in text
    )


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def _escape_in_json(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{unit:04x}" for (unit,) in struct.iter_unpack(">H", units))


_LONG_MAX: Final = 0x7FFF_FFFF_FFFF_FFFF
_LONG_DIGITS: Final = 19


def parse_long(text: str) -> int | None:
    """Return the number as Java's ``Long.parseLong`` reads it; None if it is none."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isdecimal() or len(digits.lstrip("0")) > _LONG_DIGITS:
        return None
    number = -int(digits) if text[0] == "-" else int(digits)
    return number if -_LONG_MAX - 1 <= number <= _LONG_MAX else None
