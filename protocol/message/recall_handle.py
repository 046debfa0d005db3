"""The handle by which a producer recalls a message that waits (RocketMQ 5.5.1 ``RecallMessageHandle``).

URL-safe base64 of ``v1 topic brokerName timestamp messageId`` (docs/spec/timers.md 6).
"""

from __future__ import annotations

import base64
import re
from typing import Final, NamedTuple

_VERSION: Final = "v1"
_FIELDS: Final = 5
# Java's decoder accepts a text without padding.
_BASE64: Final = re.compile(r"[A-Za-z0-9_-]+={0,2}")
_GROUP: Final = 4


class RecallHandle(NamedTuple):
    """What a handle names.

    Attributes:
        topic: the topic to which the message will be delivered.
        broker_name: the broker that has the message.
        timestamp: text of the time of its slot plus 1, ms.
        message_id: its UNIQ_KEY.
    """

    topic: str
    broker_name: str
    timestamp: str
    message_id: str

    def encode(self) -> str:
        """Return the handle's text."""
        return base64.urlsafe_b64encode(" ".join((_VERSION, *self)).encode()).decode()


def decode_recall_handle(text: str) -> RecallHandle | None:
    """Return what the handle names; None if it is no handle. Further fields are ignored."""
    if not _BASE64.fullmatch(text) or (text.endswith("=") and len(text) % _GROUP):
        return None
    digits = text.rstrip("=")
    if len(digits) % _GROUP == 1:
        return None
    raw = base64.urlsafe_b64decode(digits + "=" * (-len(digits) % _GROUP))
    items = raw.decode("utf-8", "replace").rstrip(" ").split(" ")
    if items[0] != _VERSION or len(items) < _FIELDS:
        return None
    return RecallHandle(*items[1:_FIELDS])
