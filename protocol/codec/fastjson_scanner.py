"""A scanner for fastjson text that a strict JSON parser refuses; see ``fastjson.loads``."""

from __future__ import annotations

import re
import sys
from typing import Any, Final

from rewindmq.protocol.errors import BodyError
from rewindmq.protocol.limits import MAX_BODY_DEPTH
from rewindmq.protocol.message_queue import MessageQueue

# Control characters that fastjson skips. Comments have a separate pattern, because a repeated alternation of
# both would take about a hundred bytes of memory for each character that it matches.
_BLANKS: Final = re.compile(r"[ \t\r\n\f\b\0\ufeff]*")
# What ``peek`` may have to skip begins with one of these.
_SKIPPED: Final = frozenset(" \t\r\n\f\b\0\ufeff/")
_COMMENT: Final = re.compile(r"/\*(?s:.)*?\*/|//[^\n]*")
_NUMBER: Final = re.compile(r"-?\d{1,40}(\.\d{1,40})?([eE][+-]?\d{1,3})?(?![\w.])")
_INTEGER_KEY: Final = re.compile(r"-?\d{1,20}(?!\w)")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_$][\w$]*", re.ASCII)
_PLAIN: Final = {'"': re.compile(r'[^"\\]*'), "'": re.compile(r"[^'\\]*")}
_HEX4: Final = re.compile(r"[0-9a-fA-F]{4}")
_ESCAPES: Final = {
    '"': '"', "'": "'", "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
}  # fmt: skip
_LITERALS: Final = {"true": True, "false": False, "null": None, "NaN": None}


def scan(text: str, max_steps: int | None = None) -> Any:
    """Return the one value in ``text``.

    Args:
        max_steps: limit on the values, keys, commas, comments and escapes, about 1 µs each; the rest of the
            text is passed over many characters at a time.

    Raises:
        BodyError: no value, text after the value, more than ``max_steps``, or nesting beyond
            ``MAX_BODY_DEPTH``.
    """
    scanner = _Scanner(text, sys.maxsize if max_steps is None else max_steps)
    value = scanner.value(0)
    if scanner.peek():
        raise scanner.error("unexpected text after the value")
    return value


class _Scanner:
    """Recursive descent over one text; recursion is bounded by ``MAX_BODY_DEPTH``."""

    __slots__ = ("at", "max_steps", "steps", "text")

    def __init__(self, text: str, max_steps: int) -> None:
        self.text = text
        self.at = 0
        self.max_steps = max_steps
        self.steps = 0

    def error(self, what: str) -> BodyError:
        return BodyError(f"JSON body: {what} at character {self.at}")

    def step(self) -> None:
        self.steps += 1
        if self.steps > self.max_steps:
            raise self.error(f"more than {self.max_steps} values")

    def peek(self) -> str:
        """Skip blanks and comments; return the next character, "" at the end."""
        following = self.text[self.at : self.at + 1]
        if following not in _SKIPPED:
            return following
        while True:
            self.step()
            self.at = _end(_BLANKS.match(self.text, self.at))
            following = self.text[self.at : self.at + 1]
            comment = _COMMENT.match(self.text, self.at) if following == "/" else None
            if comment is None:
                return following
            self.at = comment.end()

    def value(self, depth: int) -> Any:
        self.step()
        if depth > MAX_BODY_DEPTH:
            raise self.error(f"nested deeper than {MAX_BODY_DEPTH}")
        first = self.peek()
        if first == "{":
            return self.object(depth)
        if first == "[":
            return self.array(depth)
        if first in _PLAIN:
            return self.string(first)
        number = _NUMBER.match(self.text, self.at)
        if number is not None:
            self.at = number.end()
            return int(number[0]) if number[1] is None and number[2] is None else self.real(number[0])
        word = _IDENTIFIER.match(self.text, self.at)
        if word is None or word[0] not in _LITERALS:
            raise self.error("no value")
        self.at = word.end()
        return _LITERALS[word[0]]

    def real(self, digits: str) -> float:
        value = float(digits)
        if value in (float("inf"), float("-inf")):
            raise self.error("number out of range")
        return value

    def object(self, depth: int) -> dict[Any, Any]:
        members: dict[Any, Any] = {}
        self.at += 1
        while self.past_commas() != "}":
            key = self.key(depth)
            if self.peek() != ":":
                raise self.error("no colon")
            self.at += 1
            members[key] = self.value(depth + 1)
            self.comma_before("}")
        self.at += 1
        return members

    def array(self, depth: int) -> list[Any]:
        elements: list[Any] = []
        self.at += 1
        while self.past_commas() != "]":
            elements.append(self.value(depth + 1))
            self.comma_before("]")
        self.at += 1
        return elements

    def past_commas(self) -> str:
        """Skip any number of commas; return the next character as ``peek`` does."""
        while (following := self.peek()) == ",":
            self.step()
            self.at += 1
        return following

    def comma_before(self, end: str) -> None:
        if self.peek() not in (",", end):
            raise self.error(f"neither a comma nor {end}")

    def key(self, depth: int) -> str | int | MessageQueue:
        first = self.peek()
        if first == "{":
            return self.queue(depth)
        if first in _PLAIN:
            return self.string(first)
        bare = _INTEGER_KEY.match(self.text, self.at) or _IDENTIFIER.match(self.text, self.at)
        if bare is None:
            raise self.error("no key")
        self.at = bare.end()
        return int(bare[0]) if bare.re is _INTEGER_KEY else bare[0]

    def queue(self, depth: int) -> MessageQueue | str:
        """Return the queue that an object key names, or the text of any other object."""
        start = self.at
        members = self.value(depth + 1)
        topic, broker_name, queue_id = (members.get(name) for name in ("topic", "brokerName", "queueId"))
        if isinstance(topic, str) and isinstance(broker_name, str) and type(queue_id) is int:
            return MessageQueue(topic, broker_name, queue_id)
        return self.text[start : self.at]

    def string(self, quote: str) -> str:
        plain = _PLAIN[quote]
        pieces: list[str] = []
        self.at += 1
        while True:
            end = _end(plain.match(self.text, self.at))
            pieces.append(self.text[self.at : end])
            self.at = end + 1
            stop = self.text[end : end + 1]
            if stop == quote:
                break
            pieces.append(self.escape())
        return _joined(pieces)

    def escape(self) -> str:
        """Return the character after a backslash; also called at the end of the text, where it raises."""
        self.step()
        letter = self.text[self.at : self.at + 1]
        self.at += 1
        if letter == "u":
            digits = _HEX4.match(self.text, self.at)
            if digits is not None:
                self.at = digits.end()
                return chr(int(digits[0], 16))
        elif letter in _ESCAPES:
            return _ESCAPES[letter]
        raise self.error("no such escape, or an unfinished text")


def _end(match: re.Match[str] | None) -> int:
    assert match is not None, "both patterns match the empty text"
    return match.end()


def _joined(pieces: list[str]) -> str:
    """Join; two escaped surrogates become one character, a lone one the replacement character."""
    text = "".join(pieces)
    if text.isascii() or len(pieces) == 1:
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
