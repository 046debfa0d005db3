"""What a test expects to be there, and its type checker cannot know of."""

from __future__ import annotations

from typing import TypeVar

from rewindmq.protocol.command import RemotingCommand

T = TypeVar("T")


def present(value: T | None) -> T:
    """The value, which has to be there."""
    assert value is not None
    return value


def remark_of(answer: RemotingCommand) -> str:
    """The remark of an answer that has to carry one."""
    assert answer.remark is not None, answer
    return answer.remark


def body_of(answer: RemotingCommand) -> bytes:
    """The body of an answer, empty when there is none; received bodies are always bytes."""
    assert answer.body is None or isinstance(answer.body, (bytes, memoryview)), answer
    return bytes(answer.body or b"")
