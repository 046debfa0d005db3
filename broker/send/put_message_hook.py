"""Rewrites half and delayed messages, which are stored in a system topic first.

RocketMQ 5.3.3 ``PutMessageHook``; 4.9.4 ``SendMessageProcessor#asyncSendMessage`` and
``CommitLog#asyncPutMessage``. The message keeps its own topic and queue as properties.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rewindmq.broker.store.model import StoredMessage

# Returns the message to store, perhaps the same one; the text is its properties. May raise ``RequestError``.
PutMessageHook = Callable[[StoredMessage, str], StoredMessage]


class PutMessageHooks:
    """Hooks that run in their order for each message with special properties or flags."""

    def __init__(self, hooks: Sequence[PutMessageHook]) -> None:
        self._hooks = tuple(hooks)

    def before_put(self, message: StoredMessage, text: str) -> StoredMessage:
        """Return the message to store.

        Raises:
            RequestError: if the message is refused; nothing is stored.
        """
        for hook in self._hooks:
            message = hook(message, text)
        return message
