"""Trace records of a producer: sends that a broker answered, and ends of transactions.

RocketMQ 4.9.4 ``SendMessageTraceHookImpl``, ``EndTransactionTraceHookImpl``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rewindmq.client.msg_trace.dispatcher import TraceDispatcher
from rewindmq.client.msg_trace.records import (
    COMMITTED,
    DELAYED,
    HALF,
    NORMAL,
    NULL,
    EndTransaction,
    Pub,
)
from rewindmq.client.produce.send_request import Outgoing
from rewindmq.client.produce.send_result import SendResult, SendStatus
from rewindmq.protocol.header.message import EndTransactionRequestHeader
from rewindmq.protocol.message import Message, MessageExt
from rewindmq.protocol.message.properties import (
    DELAY,
    KEYS,
    MSG_REGION,
    TAGS,
    TRAN_MSG,
    find_property,
)

_DEFAULT_REGION: Final = "DefaultRegion"


class SendTrace:
    """Writes the trace records of one producer.

    Args:
        now_ms: returns the time, ms since the epoch.
    """

    def __init__(self, dispatcher: TraceDispatcher, group: str, now_ms: Callable[[], int]) -> None:
        self.dispatcher = dispatcher
        self.now_ms = now_ms
        self._group = group

    def sent(self, outgoing: Outgoing, address: str, result: SendResult, began: int) -> None:
        """Record an answered send, which began at ``began`` ms, to the broker at ``address``."""
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
        """Record an END_TRANSACTION (37) that is about to go to the broker at ``address``."""
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
