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

    Commas at the end of the text are ignored, and so is what follows a second ``=``, as in RocketMQ.

    Raises:
        RequestError: SYSTEM_ERROR (1), a piece is neither ``+name=value`` nor ``-name``, or a name is
            repeated.
    """
    changes: dict[str, str] = {}
    text = text.rstrip(_SEPARATOR)
    for piece in text.split(_SEPARATOR) if text else ():
        name, value = piece, ""
        if _EQUALS in piece:
            name, value, *_ = piece.split(_EQUALS)
            # RocketMQ fails with an index that is out of bounds if there is no value.
            if ADD not in name or not value:
                raise _wrong(f"add/alter attribute format is wrong: {name}")
        elif REMOVE not in name:
            raise _wrong(f"delete attribute format is wrong: {name}")
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
