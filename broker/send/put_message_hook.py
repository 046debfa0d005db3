"""What becomes of a message that asks for more than to be stored where it was sent: half messages, delays.

RocketMQ 4.9.4 ``SendMessageProcessor#asyncSendMessage`` and ``CommitLog#asyncPutMessage``: such a message is
stored in a system topic instead, its own topic and queue kept as properties.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rewindmq.broker.store.model import StoredMessage

# Gives the message to store instead, or the same one; the text is its properties. May raise ``RequestError``.
Diversion = Callable[[StoredMessage, str], StoredMessage]


class Diversions:
    """Asked, in their order, about each message whose properties or flags name something special."""

    def __init__(self, steps: Sequence[Diversion]) -> None:
        self._steps = tuple(steps)

    def divert(self, message: StoredMessage, text: str) -> StoredMessage:
        """The message as it is to be stored.

        Raises:
            RequestError: the message is refused; nothing was stored.
        """
        for step in self._steps:
            message = step(message, text)
        return message
