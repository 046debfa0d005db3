"""Pending requests of a connection: opaque numbers, futures and one timer for all time-outs."""

from __future__ import annotations

import asyncio
import logging
import math
from typing import Any, Final

from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RemotingError, RequestTimeoutError
from rewindmq.protocol.remoting.plain_responses import (
    DecodeExt,
    PendingRequest,
    Response,
    complete_plain,
)
from rewindmq.protocol.remoting.runtime import Cancellable, Timers

logger = logging.getLogger(__name__)

# NettySystemConfig.com.rocketmq.remoting.clientAsyncSemaphoreValue, here per connection.
MAX_PENDING: Final = 65_535
MAX_OPAQUE: Final = 2**31 - 1
# Time-outs may be this many seconds late, so that a busy connection sets few timers.
SWEEP_SECONDS: Final = 0.05
_SLACK_SECONDS: Final = 0.001


class PendingRequests:
    """The table of pending requests of one connection.

    Opaque numbers start at 1, because ali-ons takes 0 for "unset" (docs/spec/protocol.md 1.2). They wrap
    within the positive int32 range and skip numbers in use. One timer serves all requests: it is set for the
    earliest deadline known at that time, and only while requests are pending.

    Attributes:
        opaque: the latest number.
        may_be_plain: whether a request accepted a plain response; see ``complete_plain``.
    """

    __slots__ = (
        "_create_future",
        "_now",
        "_peer",
        "_sweep_at",
        "_table",
        "_timer",
        "_timers",
        "may_be_plain",
        "opaque",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, timers: Timers, peer: str) -> None:
        # Bound, because each request calls them: ``./scripts/bench --only hot-path``.
        self._create_future = loop.create_future
        self._now = loop.time
        self._timers = timers
        self._peer = peer
        self.opaque = 0
        self._table: dict[int, PendingRequest] = {}
        self._sweep_at = math.inf
        self._timer: Cancellable | None = None
        self.may_be_plain = False

    def __len__(self) -> int:
        return len(self._table)

    def next_opaque(self) -> int:
        """Return a number that no pending request has."""
        table = self._table
        opaque = self.opaque
        while True:
            opaque = opaque + 1 if opaque < MAX_OPAQUE else 1
            if opaque not in table:
                self.opaque = opaque
                return opaque

    def add(self, opaque: int, timeout: float) -> asyncio.Future[RemotingCommand]:
        """Expect the response to ``opaque`` within ``timeout`` seconds."""
        future: asyncio.Future[Any] = self._create_future()
        deadline = self._now() + timeout
        self._table[opaque] = (future, deadline, timeout, None)
        if deadline < self._sweep_at:
            self._arm(deadline)
        return future

    def begin(self, timeout: float, decode: DecodeExt) -> asyncio.Future[Response] | None:
        """Return the future of the response to a new request, whose number is ``opaque`` then.

        The response may be plain. None: too many requests are pending.

        Args:
            decode: decodes the ext fields of a plain response.
        """
        table = self._table
        if len(table) >= MAX_PENDING:
            return None
        opaque = self.opaque + 1
        if opaque in table or opaque > MAX_OPAQUE:
            opaque = self.next_opaque()
        self.opaque = opaque
        future: asyncio.Future[Response] = self._create_future()
        deadline = self._now() + timeout
        table[opaque] = (future, deadline, timeout, decode)
        self.may_be_plain = True
        if deadline < self._sweep_at:
            self._arm(deadline)
        return future

    def complete_plain(self, data: bytes, position: int) -> int:
        """Complete the requests of leading plain responses; return the position behind them."""
        return complete_plain(self._table, data, position)

    def complete(self, response: RemotingCommand) -> None:
        """Complete the request of ``response``; drop a response without a pending request."""
        entry = self._table.pop(response.opaque, None)
        if entry is None:
            logger.debug("dropped a response from %s without a pending request: %r", self._peer, response)
            return
        future = entry[0]
        if not future.done():
            future.set_result(response)

    def fail_all(self, kind: type[RemotingError], text: str) -> None:
        """Fail every pending request with an error of its own, because the connection is closed."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._sweep_at = math.inf
        entries = list(self._table.values())
        self._table.clear()
        for future, *_ in entries:
            if not future.done():
                future.set_exception(kind(text))

    def _arm(self, deadline: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._sweep_at = deadline
        wait = max(deadline - self._now(), SWEEP_SECONDS)
        self._timer = self._timers.call_timeout(wait, self._sweep)

    def _sweep(self) -> None:
        self._timer = None
        self._sweep_at = math.inf
        if not self._table:
            return
        now = self._now() + _SLACK_SECONDS
        expired = [opaque for opaque, entry in self._table.items() if entry[1] <= now]
        for opaque in expired:
            future, _, timeout, _ = self._table.pop(opaque)
            if not future.done():
                future.set_exception(
                    RequestTimeoutError(f"no answer from {self._peer} within {timeout * 1000:.0f} ms")
                )
        if self._table:
            self._arm(min(entry[1] for entry in self._table.values()))
