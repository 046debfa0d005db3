"""Splits a filter expression into tokens (RocketMQ 4.9.4 ``SelectorParser.jj``)."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from rewindmq.broker.filter.errors import FilterError

# Kinds of tokens besides the reserved words and symbols, which are their own kind.
NAME: Final = "a name"
STRING: Final = "a text"
INTEGER: Final = "an integer"
FLOAT: Final = "a floating-point number"
END: Final = "the end"

RESERVED_WORDS: Final = frozenset(("NOT", "AND", "OR", "BETWEEN", "IN", "TRUE", "FALSE", "NULL", "IS"))
# 5.x, after 5.1.0.
TEXT_TESTS: Final = frozenset(("CONTAINS", "STARTSWITH", "ENDSWITH"))

_BLANK_OR_COMMENT: Final = r"[ \t\n\r\f]|/\*[^*]*\*(?:\*|[^*/][^*]*\*)*/"
# Blanks and comments. A line comment must end with a line break; otherwise its ``--`` is two minus signs.
_SKIPPED: Final = re.compile(rf"(?:{_BLANK_OR_COMMENT}|--[^\n\r]*(?:\r\n|\n|\r))*+")
# The same behind the last line break: to look for another one at each ``--`` would take quadratic time.
_SKIPPED_AT_END: Final = re.compile(rf"(?:{_BLANK_OR_COMMENT})*+")
# The alternatives are in the order that gives JavaCC's longest match.
_TOKEN: Final = re.compile(
    r"""
      (?P<float> [0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)? | \.[0-9]+(?:[eE][+-]?[0-9]+)? | [0-9]+[eE][+-]?[0-9]+ )
    | (?P<integer> 0 | [1-9][0-9]*[lL]? )
    | (?P<string> '(?:[^']|'')*' )
    | (?P<word> [A-Za-z_$][A-Za-z0-9_$]* )
    | (?P<symbol> <> | >= | <= | [=<>(),+-] )
    """,
    re.VERBOSE,
)
_KINDS: Final = {"float": FLOAT, "integer": INTEGER, "string": STRING}


class Token(NamedTuple):
    """One token of an expression.

    Attributes:
        kind: one of the kinds above, the reserved word in capitals, or the symbol.
        text: the token as written; for a string, its value without the quotes.
        at: the token's position in the expression, from 0.
    """

    kind: str
    text: str
    at: int


class Lexer:
    """Returns one token after another; it reads no further than requested.

    Args:
        text_tests: CONTAINS, STARTSWITH and ENDSWITH are reserved words.
    """

    def __init__(self, text: str, *, text_tests: bool) -> None:
        self._text = text
        self._at = 0
        self._last_break = max(text.rfind("\n"), text.rfind("\r"))
        self._reserved = RESERVED_WORDS | TEXT_TESTS if text_tests else RESERVED_WORDS

    def next(self) -> Token:
        """Return the next token; at the end, END for every call.

        Raises:
            FilterError: if no token begins with the next character.
        """
        skip = _SKIPPED if self._at <= self._last_break else _SKIPPED_AT_END
        skipped = skip.match(self._text, self._at)
        start = self._at if skipped is None else skipped.end()
        if start == len(self._text):
            return Token(END, "", start)
        match = _TOKEN.match(self._text, start)
        if match is None or match.lastgroup is None:
            raise FilterError(f"character {start + 1}: {self._text[start]!r} does not begin a token")
        self._at = match.end()
        text = match.group()
        if match.lastgroup == "string":
            return Token(STRING, text[1:-1].replace("''", "'"), start)
        if match.lastgroup == "symbol":
            return Token(text, text, start)
        if match.lastgroup == "word":
            word = text.upper()
            return Token(word if word in self._reserved else NAME, text, start)
        return Token(_KINDS[match.lastgroup], text, start)
