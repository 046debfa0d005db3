"""What is traced: sends that were answered, and calls of listeners.

RocketMQ 4.9.4 ``SendMessageTraceHookImpl``, ``ConsumeMessageTraceHookImpl``, ``EndTransactionTraceHookImpl``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from rewindmq.client.msg_trace.dispatcher import TraceDispatcher
from rewindmq.client.msg_trace.records import (
    COMMITTED,
    DEFAULT_TRACE_TOPIC,
    DELAYED,
    FAILED,
    HALF,
    NORMAL,
    SUCCESS,
    EndTransaction,
    Pub,
    SubAfter,
    SubBefore,
)
from rewindmq.client.produce.send_result import SendResult, SendStatus
from rewindmq.protocol.header.message import EndTransactionRequestHeader
from rewindmq.protocol.message import Message, MessageExt
from rewindmq.protocol.properties import (
    DELAY,
    KEYS,
    MSG_REGION,
    TAGS,
    TRACE_ON,
    TRAN_MSG,
    find_property,
)
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.protocol.remoting.unique_id import UniqueIdGenerator

if TYPE_CHECKING:
    from rewindmq.client.core.client_config import ClientConfig
    from rewindmq.client.produce.send_request import Outgoing

NULL: Final = "null"
_DEFAULT_REGION: Final = "DefaultRegion"
PRODUCE: Final = "PRODUCE"
CONSUME: Final = "CONSUME"


class SendTrace:
    """The trace of one producer.

    Args:
        topic: where it goes; None takes RocketMQ's.
    """

    def __init__(self, runtime: Runtime, host: ClientConfig, group: str, topic: str | None) -> None:
        self.dispatcher = TraceDispatcher(runtime, host, group, PRODUCE, topic or DEFAULT_TRACE_TOPIC)
        self.now_ms = runtime.clock.now_ms
        self._group = group

    def sent(self, outgoing: Outgoing, address: str, result: SendResult, began: int) -> None:
        """A send was answered; ``began`` ms, ``address`` the broker's."""
        topic = result.message_queue.topic
        if topic == self.dispatcher.topic:
            return
        properties = outgoing.properties
        kind = NORMAL
        if find_property(properties, TRAN_MSG) == "true":
            kind = HALF
        elif find_property(properties, DELAY):
            kind = DELAYED
        self.dispatcher.append(
            [
                Pub(
                    began,
                    result.region,
                    self._group,
                    topic,
                    result.msg_id,
                    find_property(properties, TAGS) or NULL,
                    find_property(properties, KEYS) or NULL,
                    address,
                    len(outgoing.body),
                    self.now_ms() - began,
                    kind,
                    result.offset_msg_id,
                    result.status is SendStatus.SEND_OK,
                )
            ]
        )

    def ended(
        self, message: Message | MessageExt, header: EndTransactionRequestHeader, state: str, address: str
    ) -> None:
        """The broker at ``address`` is about to be told how a half message ended."""
        self.dispatcher.append(
            [
                EndTransaction(
                    self.now_ms(),
                    message.properties.get(MSG_REGION) or _DEFAULT_REGION,
                    self._group,
                    message.topic,
                    header.msg_id,
                    message.tags or NULL,
                    message.keys or NULL,
                    address,
                    COMMITTED,
                    header.transaction_id or NULL,
                    state,
                    header.from_transaction_check,
                )
            ]
        )


class ListenerCall(NamedTuple):
    """A call of a listener that is being traced."""

    request_id: str
    began: int
    messages: list[tuple[str, str]]
    batch_size: int


class ConsumeTrace:
    """The trace of one consumer."""

    def __init__(
        self,
        runtime: Runtime,
        host: ClientConfig,
        group: str,
        topic: str | None,
        unique_ids: UniqueIdGenerator,
    ) -> None:
        self.dispatcher = TraceDispatcher(runtime, host, group, CONSUME, topic or DEFAULT_TRACE_TOPIC)
        self._now_ms = runtime.clock.now_ms
        self._group = group
        self._next_id = unique_ids.next

    def before(self, messages: Sequence[MessageExt]) -> ListenerCall | None:
        """A listener is about to be called; None when no message wants to be traced."""
        began, request_id = self._now_ms(), self._next_id()
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
        """The listener has returned."""
        now = self._now_ms()
        cost = (now - call.began) // call.batch_size
        code = SUCCESS if success else FAILED
        self.dispatcher.append(
            [
                SubAfter(call.request_id, msg_id, cost, success, keys, code, now, self._group)
                for msg_id, keys in call.messages
            ]
        )
