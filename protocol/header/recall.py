"""Headers of RECALL_MESSAGE (370), 5.x only."""

from __future__ import annotations

from rewindmq.protocol.command import CommandHeader


class RecallMessageRequestHeader(CommandHeader):
    """Take back a message that waits for its time, RECALL_MESSAGE (370).

    ``recall_handle`` comes from the response to the send.
    """

    topic: str
    recall_handle: str
    producer_group: str | None = None


class RecallMessageResponseHeader(CommandHeader):
    """Response to RECALL_MESSAGE (370): the message's unique id."""

    msg_id: str
