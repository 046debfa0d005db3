"""The requests of a client that wait for their replies (RocketMQ's ``RequestFutureHolder``)."""

from __future__ import annotations

import asyncio
from typing import Final

from rewindmq.protocol.errors import TooManyRequestsError
from rewindmq.protocol.message import MessageExt

# As many as may wait for the responses of one broker.
MAX_PENDING_REPLIES: Final = 65_535


class PendingReplies:
    """The table of one client id: correlation id to the future of its reply."""

    def __init__(self) -> None:
        self._futures: dict[str, asyncio.Future[MessageExt]] = {}

    def __len__(self) -> int:
        return len(self._futures)

    def add(self, correlation_id: str) -> asyncio.Future[MessageExt]:
        """Expect a reply; the caller calls ``remove`` when it no longer waits.

        Raises:
            TooManyRequestsError: too many requests wait.
        """
        if len(self._futures) >= MAX_PENDING_REPLIES:
            raise TooManyRequestsError(f"{len(self._futures)} requests wait for replies already")
        future: asyncio.Future[MessageExt] = asyncio.get_running_loop().create_future()
        self._futures[correlation_id] = future
        return future

    def remove(self, correlation_id: str) -> None:
        """Expect the reply no longer."""
        self._futures.pop(correlation_id, None)

    def complete(self, correlation_id: str, reply: MessageExt) -> bool:
        """Hand a reply to its request; return False if no request waits for it."""
        future = self._futures.pop(correlation_id, None)
        if future is None or future.done():
            return False
        future.set_result(reply)
        return True
