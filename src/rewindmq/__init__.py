"""RewindMQ: a RocketMQ-compatible message-queue cluster with offset reset at its heart.

An application imports every name from this module::

    from rewindmq import LocalCluster, Message

    async with LocalCluster(brokers=1) as cluster:
        async with cluster.producer("my_producer") as producer:
            await producer.send(Message("TopicTest", b"Hello"))

Clients, for RewindMQ's or RocketMQ's clusters:
    ``Producer`` sends messages, and requests that get a reply; ``create_reply_message`` makes it.
    ``TransactionProducer`` sends messages that consumers get only if a local transaction commits.
    ``PushConsumer`` calls a listener; ``LitePullConsumer`` is polled; ``PullConsumer`` pulls on request.
    ``AdminClient`` examines and changes a cluster, for example resets a group's offsets.
Clusters:
    ``LocalCluster`` starts a name server and brokers on this machine.

``help(rewindmq.PushConsumer)`` explains each option of a client. docs/api.md lists all names. A name's module
is loaded when the name is first used.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient
    from rewindmq.client.admin.reset_result import ResetResult
    from rewindmq.client.consume.allocate import (
        AllocateAveragely,
        AllocateByCircle,
        AllocateByConfig,
        AllocateByMachineRoom,
        AllocateConsistentHash,
        AllocateStrategy,
    )
    from rewindmq.client.consume.pull_result import PullResult, PullStatus
    from rewindmq.client.consume.selector import MessageSelector
    from rewindmq.client.lite.lite_pull_consumer import LitePullConsumer
    from rewindmq.client.lite.queue_watch import QueueChangeListener
    from rewindmq.client.produce.producer import Producer, QueueSelector
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
        MessageListener,
        MessageListenerOrderly,
        ReconsumeLater,
    )
    from rewindmq.client.push.push_consumer import PushConsumer
    from rewindmq.client.reply.reply_message import create_reply_message
    from rewindmq.cluster.async_cluster import AsyncLocalCluster
    from rewindmq.cluster.errors import ClusterError
    from rewindmq.cluster.local_cluster import LocalCluster
    from rewindmq.protocol.body.group import SubscriptionGroupConfig
    from rewindmq.protocol.body.heartbeat import ConsumeFromWhere, MessageModel
    from rewindmq.protocol.body.registration import TopicConfig
    from rewindmq.protocol.command import SerializeType
    from rewindmq.protocol.errors import (
        ClientError,
        ConnectError,
        ConnectionLostError,
        NotConnectedError,
        RemotingError,
        ReplyTimeoutError,
        RequestTimeoutError,
        ResponseError,
        RewindMQError,
        TooManyRequestsError,
        UnknownOptionError,
        UnreadableResponseError,
    )
    from rewindmq.protocol.message import Message, MessageExt
    from rewindmq.protocol.message_queue import MessageQueue
    from rewindmq.protocol.profile import Profile
    from rewindmq.protocol.reset_mode import ResetMode

# The only place of the version, except speedups/Cargo.toml: Cargo reads no Python.
__version__ = "0.2.0"

__all__ = [
    "AdminClient",
    "AllocateAveragely",
    "AllocateByCircle",
    "AllocateByConfig",
    "AllocateByMachineRoom",
    "AllocateConsistentHash",
    "AllocateStrategy",
    "AsyncLocalCluster",
    "ClientError",
    "ClusterError",
    "ConnectError",
    "ConnectionLostError",
    "ConsumeConcurrentlyStatus",
    "ConsumeFromWhere",
    "ConsumeOrderlyContext",
    "ConsumeOrderlyStatus",
    "LitePullConsumer",
    "LocalCluster",
    "LocalTransactionState",
    "Message",
    "MessageExt",
    "MessageListener",
    "MessageListenerOrderly",
    "MessageModel",
    "MessageQueue",
    "MessageSelector",
    "NotConnectedError",
    "Producer",
    "Profile",
    "PullConsumer",
    "PullResult",
    "PullStatus",
    "PushConsumer",
    "QueueChangeListener",
    "QueueSelector",
    "ReconsumeLater",
    "RemotingError",
    "ReplyTimeoutError",
    "RequestTimeoutError",
    "ResetMode",
    "ResetResult",
    "ResponseError",
    "RewindMQError",
    "SendResult",
    "SendStatus",
    "SerializeType",
    "SubscriptionGroupConfig",
    "TooManyRequestsError",
    "TopicConfig",
    "TransactionListener",
    "TransactionProducer",
    "TransactionSendResult",
    "UnknownOptionError",
    "UnreadableResponseError",
    "create_reply_message",
    "select_queue_by_hash",
]

# The module that a name is loaded from.
_MODULES: Final = MappingProxyType(
    {
        "AdminClient": "client.admin.admin_client",
        "AllocateAveragely": "client.consume.allocate",
        "AllocateByCircle": "client.consume.allocate",
        "AllocateByConfig": "client.consume.allocate",
        "AllocateByMachineRoom": "client.consume.allocate",
        "AllocateConsistentHash": "client.consume.allocate",
        "AllocateStrategy": "client.consume.allocate",
        "AsyncLocalCluster": "cluster.async_cluster",
        "ClientError": "protocol.errors",
        "ClusterError": "cluster.errors",
        "ConnectError": "protocol.errors",
        "ConnectionLostError": "protocol.errors",
        "ConsumeConcurrentlyStatus": "client.push.listener",
        "ConsumeFromWhere": "protocol.body.heartbeat",
        "ConsumeOrderlyContext": "client.push.listener",
        "ConsumeOrderlyStatus": "client.push.listener",
        "LitePullConsumer": "client.lite.lite_pull_consumer",
        "LocalCluster": "cluster.local_cluster",
        "LocalTransactionState": "client.produce.transaction",
        "Message": "protocol.message",
        "MessageExt": "protocol.message",
        "MessageListener": "client.push.listener",
        "MessageListenerOrderly": "client.push.listener",
        "MessageModel": "protocol.body.heartbeat",
        "MessageQueue": "protocol.message_queue",
        "MessageSelector": "client.consume.selector",
        "Producer": "client.produce.producer",
        "Profile": "protocol.profile",
        "PullConsumer": "client.pull.pull_consumer",
        "PullResult": "client.consume.pull_result",
        "PullStatus": "client.consume.pull_result",
        "PushConsumer": "client.push.push_consumer",
        "QueueChangeListener": "client.lite.queue_watch",
        "QueueSelector": "client.produce.producer",
        "ReconsumeLater": "client.push.listener",
        "RemotingError": "protocol.errors",
        "ReplyTimeoutError": "protocol.errors",
        "NotConnectedError": "protocol.errors",
        "RequestTimeoutError": "protocol.errors",
        "ResetMode": "protocol.reset_mode",
        "ResetResult": "client.admin.reset_result",
        "ResponseError": "protocol.errors",
        "RewindMQError": "protocol.errors",
        "SendResult": "client.produce.send_result",
        "SendStatus": "client.produce.send_result",
        "SerializeType": "protocol.command",
        "SubscriptionGroupConfig": "protocol.body.group",
        "TooManyRequestsError": "protocol.errors",
        "TopicConfig": "protocol.body.registration",
        "TransactionListener": "client.produce.transaction",
        "TransactionProducer": "client.produce.transaction_producer",
        "TransactionSendResult": "client.produce.transaction",
        "UnknownOptionError": "protocol.errors",
        "UnreadableResponseError": "protocol.errors",
        "create_reply_message": "client.reply.reply_message",
        "select_queue_by_hash": "client.produce.queue_selector",
    }
)

# Type checkers read the imports above; with ``__getattr__`` they would accept any other name, too.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        import importlib

        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = importlib.import_module(f"{__name__}.{_MODULES[name]}")
        value = globals()[name] = getattr(module, name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
