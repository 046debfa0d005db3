"""Commits that a reset has overtaken: body of the answer to LIST_FENCED_COMMITS, which is ours."""

from __future__ import annotations

from msgspec import field

from rewindmq.protocol.body import RemotingBody
from rewindmq.protocol.integers import Int32, Int64


class FencedCommit(RemotingBody):
    """One commit that was refused.

    Attributes:
        at: when, ms since 1970.
        client: ``host:port`` it came from.
        client_id: as in the client's heartbeat, "" when it never sent one.
        carrier: request code that brought it, 15 or 11.
        offset: what it wanted to store.
        epoch: what it said the deliveries were of; None from a client that knows no epochs.
        stored_offset, stored_epoch: what was stored then, and stays.
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
    """The newest ones, oldest first.

    Attributes:
        total: how many there were since the broker started, those no longer listed included.
    """

    commits: list[FencedCommit] = field(default_factory=list)
    total: Int64 = 0
