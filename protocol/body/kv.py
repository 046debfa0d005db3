"""A table of texts: body of 28, 219 and of the answer to 103 (docs/spec/protocol.md 5.8)."""

from __future__ import annotations

from msgspec import field

from rewindmq.protocol.body import RemotingBody


class KVTable(RemotingBody):
    """Key → value."""

    table: dict[str, str] = field(default_factory=dict)
