"""Commits that a reset has overtaken: body of the response to RewindMQ's LIST_FENCED_COMMITS."""

from __future__ import annotations

from msgspec import field

from rewindmq.protocol.body import RemotingBody
from rewindmq.protocol.integers import Int32, Int64


class FencedCommit(RemotingBody):
    """One refused commit.

    Attributes:
        at: time of the refusal, ms since 1970.
        client: ``host:port`` of the client.
        client_id: as in the client's heartbeat, "" without a heartbeat.
        carrier: UPDATE_CONSUMER_OFFSET (15) or PULL_MESSAGE (11).
        offset: the offset of the commit.
        epoch: the epoch of the commit; None from a client without epochs.
        stored_offset, stored_epoch: the stored values, which stay unchanged.
        reason: one line.
    """

    at: Int64
    client: str
    group: str
    topic: str
    queue_id: Int32
    offset: Int64
    stored_offset: Int64
    stored_epoch: Int64
    carrier: Int32
    client_id: str = ""
    epoch: Int64 | None = None
    reason: str = ""


class FencedCommitList(RemotingBody):
    """The newest refused commits, oldest first.

    Attributes:
        total: number of refused commits since the broker started, including unlisted ones.
    """

    commits: list[FencedCommit] = field(default_factory=list)
    total: Int64 = 0
