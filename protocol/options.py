"""Checks constructor options: parses enum values and suggests names for unknown options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import wraps
from types import MappingProxyType
from typing import Any, Final, ParamSpec, TypeVar

from rewindmq.protocol.errors import ClientError, RewindMQError, UnknownOptionError

E = TypeVar("E", bound=Enum)
P = ParamSpec("P")

# Options of earlier versions and their present names.
_RENAMED: Final = MappingProxyType({"switches": "profile", "wire": "serialize_type"})
_NO_ALIASES: MappingProxyType[str, Any] = MappingProxyType({})


def parse_choice(
    kind: type[E],
    value: object,
    option: str,
    *,
    aliases: Mapping[str, E] = _NO_ALIASES,
    error: type[RewindMQError] = ClientError,
) -> E:
    """Read an option whose value is a member of an enum.

    Args:
        value: a member, its value or its name; case is ignored.
        option: the option's name, for the error.
        aliases: short names in lower case. The error suggests these.
        error: the class of the error to raise.

    Raises:
        RewindMQError: ``value`` is not a member; the text lists the choices and the nearest one.
    """
    if isinstance(value, kind):
        return value
    known = {str(member.value).lower(): member for member in kind}
    known |= {member.name.lower(): member for member in kind} | dict(aliases)
    word = str(value).lower() if isinstance(value, (str, int)) and not isinstance(value, bool) else ""
    if word in known:
        return known[word]
    names = list(aliases) or [member.name.lower() for member in kind]
    raise error(f"{option} {value!r} is none of {', '.join(names)}{did_you_mean(word, names)}")


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` with the name nearest to ``word``, or "" if no name is near."""
    # Imported here because only an error needs it.
    from difflib import get_close_matches

    found = get_close_matches(word, list(names), n=1)
    return f"; did you mean {found[0]!r}?" if found else ""


def refuse_unknown_options(init: Callable[P, None]) -> Callable[P, None]:
    """Decorate an ``__init__`` to suggest the nearest option name when it gets an unknown option.

    The decorated function raises ``UnknownOptionError``.
    """
    parameters = list(inspect.signature(init).parameters)[1:]

    @wraps(init)
    def checked(*args: P.args, **options: P.kwargs) -> None:
        for name in options:
            if name not in parameters:
                owner = type(args[0]).__name__
                meant = did_you_mean(_RENAMED.get(name, name), parameters)
                raise UnknownOptionError(f"{owner} has no option {name!r}{meant}")
        init(*args, **options)

    return checked
