"""Clients: producer, push, pull and lite pull consumer, and the admin client.

Names are loaded when they are first used, so that showing a command's help loads no client.
"""

from __future__ import annotations

import importlib
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient
    from rewindmq.client.consume.pull_result import PullResult, PullStatus
    from rewindmq.client.consume.selector import MessageSelector
    from rewindmq.client.lite.lite_pull_consumer import LitePullConsumer
    from rewindmq.client.produce.producer import Producer
    from rewindmq.client.produce.queue_selector import select_queue_by_hash
    from rewindmq.client.produce.send_result import SendResult, SendStatus
    from rewindmq.client.produce.transaction import (
        LocalTransactionState,
        TransactionListener,
        TransactionSendResult,
    )
    from rewindmq.client.produce.transaction_producer import TransactionProducer
    from rewindmq.client.pull.pull_consumer import PullConsumer
    from rewindmq.client.push.listener import (
        ConsumeConcurrentlyStatus,
        ConsumeOrderlyContext,
        ConsumeOrderlyStatus,
        ReconsumeLater,
    )
    from rewindmq.client.push.push_consumer import PushConsumer
    from rewindmq.protocol.body.heartbeat import ConsumeFromWhere, MessageModel
    from rewindmq.protocol.body.registration import TopicConfig
    from rewindmq.protocol.errors import ClientError, RemotingError, ResponseError, RewindMQError
    from rewindmq.protocol.message import Message, MessageExt
    from rewindmq.protocol.message_queue import MessageQueue
    from rewindmq.protocol.reset_mode import ResetMode

__all__ = [
    "AdminClient",
    "ClientError",
    "ConsumeConcurrentlyStatus",
    "ConsumeFromWhere",
    "ConsumeOrderlyContext",
    "ConsumeOrderlyStatus",
    "LitePullConsumer",
    "LocalTransactionState",
    "Message",
    "MessageExt",
    "MessageModel",
    "MessageQueue",
    "MessageSelector",
    "Producer",
    "PullConsumer",
    "PullResult",
    "PullStatus",
    "PushConsumer",
    "ReconsumeLater",
    "RemotingError",
    "ResetMode",
    "ResponseError",
    "RewindMQError",
    "SendResult",
    "SendStatus",
    "TopicConfig",
    "TransactionListener",
    "TransactionProducer",
    "TransactionSendResult",
    "select_queue_by_hash",
]

_MODULES: Final = MappingProxyType(
    {
        "AdminClient": "rewindmq.client.admin.admin_client",
        "ClientError": "rewindmq.protocol.errors",
        "ConsumeConcurrentlyStatus": "rewindmq.client.push.listener",
        "ConsumeFromWhere": "rewindmq.protocol.body.heartbeat",
        "ConsumeOrderlyContext": "rewindmq.client.push.listener",
        "ConsumeOrderlyStatus": "rewindmq.client.push.listener",
        "LitePullConsumer": "rewindmq.client.lite.lite_pull_consumer",
        "LocalTransactionState": "rewindmq.client.produce.transaction",
        "Message": "rewindmq.protocol.message",
        "MessageExt": "rewindmq.protocol.message",
        "MessageModel": "rewindmq.protocol.body.heartbeat",
        "MessageQueue": "rewindmq.protocol.message_queue",
        "MessageSelector": "rewindmq.client.consume.selector",
        "Producer": "rewindmq.client.produce.producer",
        "PullConsumer": "rewindmq.client.pull.pull_consumer",
        "PullResult": "rewindmq.client.consume.pull_result",
        "PullStatus": "rewindmq.client.consume.pull_result",
        "PushConsumer": "rewindmq.client.push.push_consumer",
        "ReconsumeLater": "rewindmq.client.push.listener",
        "RemotingError": "rewindmq.protocol.errors",
        "ResetMode": "rewindmq.protocol.reset_mode",
        "ResponseError": "rewindmq.protocol.errors",
        "RewindMQError": "rewindmq.protocol.errors",
        "SendResult": "rewindmq.client.produce.send_result",
        "SendStatus": "rewindmq.client.produce.send_result",
        "TopicConfig": "rewindmq.protocol.body.registration",
        "TransactionListener": "rewindmq.client.produce.transaction",
        "TransactionProducer": "rewindmq.client.produce.transaction_producer",
        "TransactionSendResult": "rewindmq.client.produce.transaction",
        "select_queue_by_hash": "rewindmq.client.produce.queue_selector",
    }
)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_MODULES[name]), name)
    return value
