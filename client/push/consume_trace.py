"""ConsumeTrace: records each listener call for the message trace.

Source: RocketMQ 4.9.4 ``ConsumeMessageTraceHookImpl``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rewindmq.client.msg_trace.dispatcher import TraceDispatcher
from rewindmq.client.msg_trace.records import FAILED, NULL, SUCCESS, SubAfter, SubBefore
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message.properties import MSG_REGION, TRACE_ON
from rewindmq.protocol.remoting.unique_id import UniqueIdGenerator


class ListenerCall(NamedTuple):
    """One listener call that is being traced."""

    request_id: str
    began: int
    messages: list[tuple[str, str]]
    batch_size: int


class ConsumeTrace:
    """Records the listener calls of one consumer.

    Args:
        now_ms: the clock, ms since the epoch.
        unique_ids: generates the id of each call.
    """

    def __init__(
        self,
        dispatcher: TraceDispatcher,
        group: str,
        now_ms: Callable[[], int],
        unique_ids: UniqueIdGenerator,
    ) -> None:
        self.dispatcher = dispatcher
        self._now_ms = now_ms
        self._group = group
        self._unique_ids = unique_ids

    def before(self, messages: Sequence[MessageExt]) -> ListenerCall | None:
        """Record that the listener is about to be called; return None if no message is traced."""
        began, request_id = self._now_ms(), self._unique_ids.next()
        records = [
            SubBefore(
                began,
                message.properties.get(MSG_REGION, NULL),
                self._group,
                request_id,
                message.msg_id,
                message.reconsume_times,
                message.keys or NULL,
            )
            for message in messages
            if message.properties.get(TRACE_ON) != "false"
        ]
        if not records:
            return None
        self.dispatcher.append(records)
        traced = [(record.msg_id, record.keys) for record in records]
        return ListenerCall(request_id, began, traced, len(messages))

    def after(self, call: ListenerCall, *, success: bool) -> None:
        """Record that the listener has returned."""
        now = self._now_ms()
        cost = (now - call.began) // call.batch_size
        code = SUCCESS if success else FAILED
        self.dispatcher.append(
            [
                SubAfter(call.request_id, msg_id, cost, success, keys, code, now, self._group)
                for msg_id, keys in call.messages
            ]
        )
