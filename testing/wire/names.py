"""Names of requests and response codes, as a test gives them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from enum import IntEnum
from typing import Final, TypeVar

from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.testing.errors import KitError

_NEAR: Final = 4
# Characters of a wrong name that an error quotes. A longer one is like no name of RocketMQ.
_SHOWN: Final = 30
_LONGEST: Final = 60

CodeT = TypeVar("CodeT", bound=IntEnum)


def request_code(name: str | int) -> RequestCode:
    """Return the request code of a name or a number.

    Raises:
        KitError: RocketMQ has no such request; the text has the names nearest to it.
    """
    return _code(RequestCode, name, "request")


def failure_code(name: str | int) -> ResponseCode:
    """Return the response code of a name or a number.

    Raises:
        KitError: RocketMQ has no such code, or it is SUCCESS.
    """
    code = _code(ResponseCode, name, "response code")
    if code is ResponseCode.SUCCESS:
        raise KitError("SUCCESS is no failure: name another response code, such as SYSTEM_BUSY")
    return code


def _code(codes: type[CodeT], name: str | int, what: str) -> CodeT:
    if isinstance(name, str):
        try:
            return codes[name.upper()]
        except KeyError:
            near = nearest(name.upper(), codes.__members__) if len(name) <= _LONGEST else []
    else:
        try:
            return codes(name)
        except ValueError:
            near = []
    hint = f"; near it: {', '.join(near)}" if near else "; docs/requests.md has the names"
    text = repr(name)
    shown = text if len(text) <= _LONGEST else f"{text[:_SHOWN]}…"
    raise KitError(f"{shown} is not a {what} of RocketMQ{hint}")


def nearest(name: str, names: Iterable[str]) -> list[str]:
    """Return the names that are most like ``name``, or contain it."""
    known = list(names)
    near = difflib.get_close_matches(name, known, _NEAR)
    near += [each for each in known if name and name in each and each not in near]
    return near[:_NEAR]
