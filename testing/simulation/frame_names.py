"""Names the frames of a connection in words: "the response to PULL_MESSAGE (queue 2, offset 4)"."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from rewindmq.protocol.code import SHORT_NAMED_REQUESTS, RequestCode
from rewindmq.protocol.command import FLAG_ONEWAY, RemotingCommand
from rewindmq.protocol.frame import FrameDecoder
from rewindmq.race.sim.network import SimTransport

# Ext fields that distinguish requests, and their names in the text.
_SHOWN: Final = MappingProxyType(
    {
        "topic": "topic",
        "b": "topic",
        "consumerGroup": "group",
        "queueId": "queue",
        "e": "queue",
        "queueOffset": "offset",
        "commitOffset": "offset",
        "offset": "offset",
    }
)


class FrameNames:
    """Follows the requests of all connections, so that a response has its request's name."""

    def __init__(self) -> None:
        # By the end that sent the request and its opaque.
        self._asked: dict[tuple[SimTransport, int], str] = {}

    def describe(self, end: SimTransport, data: bytes) -> str:
        """Return what ``end`` writes; call it once for each write."""
        return " and ".join(self._name(end, command) for command in FrameDecoder().feed(data))

    def _name(self, end: SimTransport, command: RemotingCommand) -> str:
        if command.is_response:
            asked = self._asked.pop((end.peer, command.opaque), "a request")
            code = f" with code {command.code}" if command.code else ""
            return f"the response{code} to {asked}"
        name = f"{_code_name(command.code)}{_fields(command)}"
        if command.flag & FLAG_ONEWAY:
            return f"the one-way request {name}"
        self._asked[end, command.opaque] = name
        return f"the request {name}"


def _code_name(code: int) -> str:
    try:
        return RequestCode(code).name
    except ValueError:
        return str(code)


def _fields(command: RemotingCommand) -> str:
    ext = command.ext
    shown: dict[str, str] = {}
    for name, text in _SHOWN.items():
        if name in ext and (len(name) > 1 or command.code in SHORT_NAMED_REQUESTS):
            shown.setdefault(text, f"{text} {ext[name]!s}")
    return f" ({', '.join(shown.values())})" if shown else ""
