"""Names of topics: body of 206, 224, 304, 305, 311 to 313 (docs/spec/protocol.md 5.8)."""

from __future__ import annotations

from msgspec import field

from rewindmq.protocol.body import RemotingBody


class TopicList(RemotingBody):
    """Topic names, and the address of a broker where the request asks for system topics."""

    topic_list: list[str] = field(default_factory=list)
    broker_addr: str | None = None
