"""Paths of pages that templates link to."""

from __future__ import annotations

from urllib.parse import quote


def message_href(topic: str, broker: str, queue: int, offset: int) -> str:
    """Return the path of a message's page."""
    return f"/topics/{quote(topic, safe='')}/messages/{quote(broker, safe='')}/{queue}/{offset}"
