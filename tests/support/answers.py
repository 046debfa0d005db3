"""Parts of a response that a test expects to be there."""

from __future__ import annotations

from rewindmq.protocol.command import RemotingCommand


def remark_of(answer: RemotingCommand) -> str:
    """The remark of an answer that has to carry one."""
    assert answer.remark is not None, answer
    return answer.remark


def body_of(answer: RemotingCommand) -> bytes:
    """The body of an answer that has to carry one."""
    assert isinstance(answer.body, (bytes, memoryview)), answer
    return bytes(answer.body)
