"""Frame patterns, and the interface of a hold that has begun."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Protocol

from rewindmq.protocol.code import RequestCode


class Form(StrEnum):
    """Form of a frame."""

    REQUEST = "request"
    ONEWAY = "oneway"
    RESPONSE = "response"


@dataclass(frozen=True, slots=True)
class FramePattern:
    """Pattern that matches the frames to catch.

    Attributes:
        code: request code; for a response, the code of its request.
        form: None matches requests and oneway requests, but no responses.
        response_code: response code; None matches any.
        fields: ext fields under their wire names, compared as text; for a response, fields of its request.
            "group" also stands for consumerGroup and producerGroup.
        skip: number of matching frames to pass on first.
        count: number of frames to catch; None catches all.
        blocks: True if later frames of the same connection and direction wait behind a held frame. Otherwise
            they overtake it, as in RocketMQ's thread pools.
        client, server: names of the processes at the two ends; None matches any. "billing" also matches
            "billing/2".
    """

    code: RequestCode
    form: Form | None = None
    response_code: int | None = None
    fields: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    skip: int = 0
    count: int | None = 1
    blocks: bool = False
    client: str | None = None
    server: str | None = None


def is_called(end: str, name: str) -> bool:
    """Return True if ``name`` means the process ``end``: "billing" means "billing/2", too."""
    return name in (end, end.partition("/")[0])


class HoldHandle(Protocol):
    """A hold that has begun: catches and holds frames, or a stalled thread, until it ends."""

    @property
    def caught(self) -> int:
        """Number of frames (or threads) caught so far."""

    async def wait(self, count: int = 1, *, seconds: float = 60.0) -> None:
        """Wait until ``count`` frames or threads are caught.

        Raises:
            RaceError: that takes longer than ``seconds`` (never scaled), or the hold ends.
        """

    def release(self) -> None:
        """Pass on the held frames in order, or let the stalled thread continue, and end the hold."""

    def drop(self) -> None:
        """Drop the held frames, and end the hold. A stalled thread cannot be dropped: raise RaceError."""

    def refuse(self, code: int, remark: str) -> None:
        """Pass on the held responses as refusals with this response code, and end the hold.

        Raises:
            RaceError: a held frame is not a response.
        """
