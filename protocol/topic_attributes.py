"""Parses the attributes of UPDATE_AND_CREATE_TOPIC (17): ``+name=value,-name`` (5.3.3 AttributeParser)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RequestError

ADD: Final = "+"
REMOVE: Final = "-"
_SEPARATOR: Final = ","
_EQUALS: Final = "="


def parse_attributes(text: str) -> dict[str, str]:
    """Return the changes in a text by signed name; the value of a removed attribute is empty.

    Raises:
        RequestError: SYSTEM_ERROR (1), a piece is neither ``+name=value`` nor ``-name``, or a name is
            repeated.
    """
    changes: dict[str, str] = {}
    for piece in text.split(_SEPARATOR) if text else ():
        name, equals, value = piece.strip().partition(_EQUALS)
        if equals and (name[:1] != ADD or not value):
            raise _wrong(f"add/alter attribute format is wrong: {piece}")
        if not equals and name[:1] != REMOVE:
            raise _wrong(f"delete attribute format is wrong: {piece}")
        if name in changes:
            raise _wrong(f"key duplication: {name}")
        changes[name] = value
    return changes


def format_attributes(changes: Mapping[str, str]) -> str:
    """Return the text of the changes that ``parse_attributes`` reads."""
    pieces = (f"{name}{_EQUALS}{value}" if value else name for name, value in changes.items())
    return _SEPARATOR.join(pieces)


def _wrong(remark: str) -> RequestError:
    return RequestError(ResponseCode.SYSTEM_ERROR, remark)
