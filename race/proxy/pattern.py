"""Frame patterns, and the interface of holds on the frames that a pattern catches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Protocol

from rewindmq.protocol.code import RequestCode


class Form(StrEnum):
    """What a frame is to the request it belongs to."""

    REQUEST = "request"
    ONEWAY = "oneway"
    RESPONSE = "response"


@dataclass(frozen=True, slots=True)
class FramePattern:
    """Frames with a given request code; a response has the code of what it answers.

    Attributes:
        code: request code.
        form: None takes requests and oneway requests, but no responses.
        response_code: of a response; None takes any.
        fields: ext fields under their wire names, compared as texts; a response is matched by those of the
            request it answers.
        skip: how many matching frames to let pass first.
        count: how many to catch; None all.
        blocks: frames behind a caught one, of the same connection and direction, wait for it too. Without it
            they overtake, as RocketMQ's thread pools let them.
    """

    code: RequestCode
    form: Form | None = None
    response_code: int | None = None
    fields: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    skip: int = 0
    count: int | None = 1
    blocks: bool = False


class Hold(Protocol):
    """Frames (or a stalled thread) caught and not yet let go."""

    @property
    def caught(self) -> int:
        """How many were caught so far."""

    async def wait(self, count: int = 1, *, seconds: float = 60.0) -> None:
        """Wait until ``count`` are caught.

        RaceError when that takes longer than ``seconds``, which no time scale shortens, or when it catches
        nothing more.
        """

    def release(self) -> None:
        """Let everything caught go on, in order, and catch nothing more."""

    def drop(self) -> None:
        """Throw away what is caught, and catch nothing more."""

    def refuse(self, code: int, remark: str) -> None:
        """Let the caught answers go on as refusals with this response code, and catch nothing more.

        Raises:
            RaceError: something else than answers is caught.
        """
