"""Paths: finds the handler of a request by its method and path."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Final, TypeVar

from rewindmq.testing.control.http_request import HttpError, HttpRequest

_VERSION: Final = "v1"
# Characters of the longest name of a member, rule or snapshot, and of the path that an error quotes.
_LONGEST: Final = 255
_SHOWN: Final = 200

# Called with the values of a path's placeholders, and the body.
Handler = Callable[[tuple[str, ...], bytes], Awaitable[object]]
# By method and path; ``*`` stands for one part of the path.
Handlers = Mapping[tuple[str, str], Handler]
ValueT = TypeVar("ValueT")


class Paths:
    """All paths of the control port."""

    def __init__(self, *handlers: Handlers) -> None:
        self._handlers: Final = {key: handler for each in handlers for key, handler in each.items()}

    def find(self, request: HttpRequest) -> tuple[Handler, tuple[str, ...]]:
        """Return the handler of a request, and the values of its path's placeholders.

        Raises:
            HttpError: there is no such path, or it has another method.
        """
        methods = []
        if request.path[:1] == (_VERSION,):
            for (method, pattern), handler in self._handlers.items():
                values = _values(pattern, request.path[1:])
                if values is not None and method == request.method:
                    return handler, values
                if values is not None:
                    methods.append(method)
        path = ("/" + "/".join(request.path))[:_SHOWN]
        if methods:
            raise HttpError(HTTPStatus.METHOD_NOT_ALLOWED, f"send {' or '.join(methods)} to {path}")
        known = ", ".join(dict.fromkeys(f"/{_VERSION}/{pattern}" for _, pattern in self._handlers))
        raise HttpError(HTTPStatus.NOT_FOUND, f"there is no path {path}; paths: {known}")


def action_of(actions: Mapping[str, ValueT], word: str, what: str) -> ValueT:
    """Return what the last part of a path names.

    Raises:
        HttpError: it is no action on ``what``.
    """
    if word not in actions:
        known = ", ".join(actions)
        raise HttpError(HTTPStatus.NOT_FOUND, f"{word!r} is no action on {what}; actions: {known}")
    return actions[word]


def _values(pattern: str, path: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the parts of a path that ``*`` stands for; None if the path is another."""
    parts = pattern.split("/")
    if len(parts) != len(path) or max(map(len, path)) > _LONGEST:
        return None
    pairs = list(zip(parts, path, strict=True))
    if any(part not in ("*", value) for part, value in pairs):
        return None
    return tuple(value for part, value in pairs if part == "*")
