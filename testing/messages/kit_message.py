"""KitMessage: one message of a topic, as the test that sent it and the listener that got it see it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message_queue import MessageQueue

_SHOWN_BYTES: Final = 60


@dataclass(frozen=True, slots=True, repr=False)
class KitMessage:
    """One message of a topic.

    Two are equal if they have the same id and body. So a message that was redelivered from the retry topic
    equals the message that was sent.

    Attributes:
        id: the unique id that the producer gave.
        body: as it was sent.
        queue: where the message is stored first.
        offset: its offset in that queue.
    """

    id: str
    body: bytes
    queue: MessageQueue = field(compare=False)
    offset: int = field(compare=False)
    tags: str | None = field(default=None, compare=False)
    keys: str | None = field(default=None, compare=False)

    @property
    def text(self) -> str:
        """The body as UTF-8 text.

        Raises:
            UnicodeDecodeError: it is none.
        """
        return self.body.decode()

    def json(self) -> Any:
        """Return the body as a JSON value.

        Raises:
            msgspec.DecodeError: it is none.
        """
        return msgspec.json.decode(self.body)

    def __repr__(self) -> str:
        body = self.body[:_SHOWN_BYTES].decode(errors="backslashreplace")
        dots = "..." if len(self.body) > _SHOWN_BYTES else ""
        return f"<{self.queue.broker_name}/{self.queue.queue_id} @{self.offset} {body!r}{dots}>"


def kit_message(message: MessageExt) -> KitMessage:
    """Return a received message; ``queue`` and ``offset`` of a retried message are those of its retry."""
    return KitMessage(
        message.msg_id,
        bytes(message.body),
        message.message_queue,
        message.queue_offset,
        message.tags,
        message.keys,
    )


def in_queue_order(messages: Iterable[KitMessage]) -> list[KitMessage]:
    """Sort messages by queue and offset, and remove duplicates."""
    return sorted(
        {message.id: message for message in messages}.values(), key=lambda each: (each.queue, each.offset)
    )
