"""The requests of one producer that wait for replies (docs/request_reply.md).

Source: RocketMQ 4.9.7 ``DefaultMQProducerImpl#request``, ``RequestResponseFuture``.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from rewindmq.client.reply.pending_replies import PendingReplies
from rewindmq.protocol.errors import ClientError, ReplyTimeoutError, RequestTimeoutError
from rewindmq.protocol.message import Message, MessageExt
from rewindmq.protocol.message.properties import CORRELATION_ID, REPLY_TO_CLIENT, TTL
from rewindmq.protocol.remoting.runtime import Runtime


class WaitingRequests:
    """Sends requests, and waits for their replies.

    Args:
        replies: the table in which the client's requests expect their replies.
    """

    def __init__(self, replies: PendingReplies, runtime: Runtime) -> None:
        self._replies = replies
        self._runtime = runtime
        self._waiting: set[asyncio.Future[MessageExt]] = set()

    def mark(self, message: Message, client_id: str, timeout: float) -> None:
        """Give a message the properties of a new request.

        Raises:
            ClientError: the timeout is not above 0.
        """
        if not timeout > 0:
            raise ClientError(f"the timeout of a request must be above 0, not {timeout}")
        number = self._runtime.random.getrandbits(128)
        message.properties[CORRELATION_ID] = str(uuid.UUID(int=number, version=4))
        message.properties[REPLY_TO_CLIENT] = client_id
        message.properties[TTL] = str(round(timeout * 1_000))

    async def reply_to(
        self, message: Message, timeout: float, send: Callable[[], Coroutine[Any, Any, None]]
    ) -> MessageExt:
        """Send a marked message, and return its reply, which may arrive before the send is confirmed.

        Args:
            timeout: seconds for both.

        Raises:
            ReplyTimeoutError: the message was sent, but no reply arrived in time.
            RequestTimeoutError: the send was not confirmed in time.
            TooManyRequestsError: too many requests of this client wait.
            ClientError: the producer shuts down; or what ``send`` raises.
        """
        correlation_id = message.properties[CORRELATION_ID]
        reply = self._replies.add(correlation_id)
        self._waiting.add(reply)
        sending = asyncio.get_running_loop().create_task(send())
        sending.add_done_callback(partial(_pass_failure, reply))
        timer = self._runtime.timers.call_timeout(timeout, _expire, reply, sending, message.topic, timeout)
        try:
            return await reply
        finally:
            timer.cancel()
            sending.cancel()
            self._waiting.discard(reply)
            self._replies.remove(correlation_id)

    def close(self) -> None:
        """Fail the waiting requests, because the producer shuts down."""
        for reply in self._waiting:
            if not reply.done():
                reply.set_exception(ClientError("the producer shut down before the reply arrived"))


def _pass_failure(reply: asyncio.Future[MessageExt], sending: asyncio.Task[None]) -> None:
    """Fail a request whose send failed."""
    if sending.cancelled():
        reply.cancel()
        return
    error = sending.exception()
    if error is not None and not reply.done():
        reply.set_exception(error)


def _expire(
    reply: asyncio.Future[MessageExt], sending: asyncio.Task[None], topic: str, timeout: float
) -> None:
    if reply.done():
        return
    text = f"{timeout * 1_000:.0f} ms."
    if sending.done():
        error = f"send request message to <{topic}> OK, but wait reply message timeout, {text}"
        reply.set_exception(ReplyTimeoutError(error))
    else:
        reply.set_exception(
            RequestTimeoutError(f"send request message to <{topic}>: not confirmed within {text}")
        )
