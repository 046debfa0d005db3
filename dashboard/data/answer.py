"""Answer: what a server returned to a question of a page, or what happened instead."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Generic, TypeVar

from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import (
    BodyError,
    ClientError,
    FrameError,
    HeaderError,
    ResponseError,
    RewindMQError,
    UnreadableResponseError,
)
from rewindmq.protocol.message.record import RecordError

# A server that answers later counts as hanging.
LIMIT_SECONDS: Final = 2.0
NAME_SERVER: Final = "The name server"
THE_BROKER: Final = "The broker"

# Codes that say: what was asked for is not there.
_ABSENT: Final = (
    ResponseCode.TOPIC_NOT_EXIST,
    ResponseCode.NO_MESSAGE,
    ResponseCode.CONSUMER_NOT_ONLINE,
)

T = TypeVar("T")


class NoAnswer(StrEnum):
    """What a server did instead of answering; the predicate of a sentence."""

    SILENT = "did not answer"
    REFUSED = "refused"
    UNREADABLE = "sent an answer that cannot be read"
    UNASKED = "was not asked"


@dataclass(frozen=True)
class Answer(Generic[T]):
    """A server's answer, or why there is none; one of ``value`` and ``problem`` is None.

    Attributes:
        problem: the reason, in one line without a full stop.
        code: the response code of a refusal; None: the server did not refuse.
        error: what was raised; None: the time was over, or nothing was asked.
        server: which server was asked, as the subject of a sentence.
    """

    value: T | None
    problem: str | None = None
    code: int | None = None
    error: RewindMQError | None = None
    server: str = THE_BROKER

    @property
    def outcome(self) -> NoAnswer:
        """What the server did; only of an answer with a problem."""
        if _is_unreadable(self.error):
            return NoAnswer.UNREADABLE
        if self.code is not None:
            return NoAnswer.REFUSED
        return NoAnswer.UNASKED if isinstance(self.error, ClientError) else NoAnswer.SILENT

    @property
    def is_absent(self) -> bool:
        """True if there is no such topic, group, message or client."""
        return self.code in _ABSENT

    @property
    def sentence(self) -> str:
        """What happened and, if a name server is silent, what to do."""
        text = f"{self.server} {self.outcome}: {self.problem}."
        if self.server == NAME_SERVER and self.outcome is NoAnswer.SILENT:
            text += " Check that it runs, and the address that the dashboard was started with."
        return text

    @property
    def status(self) -> int:
        """The HTTP status of a page that is about what was asked for."""
        return 404 if self.is_absent else 200

    def failed(self) -> Answer[Any]:
        """Return this failure as that of a question that needed the value."""
        return Answer(None, self.problem, self.code, self.error, self.server)


def failed_with(error: RewindMQError, server: str) -> Answer[Any]:
    """Return the answer to a question that raised."""
    is_refusal = isinstance(error, ResponseError) and not _is_unreadable(error)
    code = error.code if isinstance(error, ResponseError) and is_refusal else None
    return Answer(None, _problem(error), code, error, server)


def _is_unreadable(error: RewindMQError | None) -> bool:
    return isinstance(error, (BodyError, HeaderError, FrameError, RecordError, UnreadableResponseError))


def _problem(error: RewindMQError) -> str:
    """Return one line: remarks of RocketMQ have several, and end with a link to its documentation."""
    text = str(error)
    if isinstance(error, ResponseError):
        text = error.remark
        if not _is_unreadable(error):
            text = f"{_code_name(error.code)}: {text}" if text else _code_name(error.code)
    return " ".join(text.split()).rstrip(".")


def _code_name(code: int) -> str:
    try:
        return f"{ResponseCode(code).name} ({code})"
    except ValueError:
        return f"response code {code}"
