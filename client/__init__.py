"""Clients: producer, push and pull consumer."""

from rewindmq.client.listener import ConsumeConcurrentlyStatus
from rewindmq.client.producer import Producer
from rewindmq.client.pull_consumer import PullConsumer
from rewindmq.client.pull_result import PullResult, PullStatus
from rewindmq.client.push_consumer import PushConsumer
from rewindmq.client.send_result import SendResult, SendStatus
from rewindmq.protocol.body.heartbeat import ConsumeFromWhere, MessageModel
from rewindmq.protocol.message import Message, MessageExt
from rewindmq.protocol.message_queue import MessageQueue

__all__ = [
    "ConsumeConcurrentlyStatus",
    "ConsumeFromWhere",
    "Message",
    "MessageExt",
    "MessageModel",
    "MessageQueue",
    "Producer",
    "PullConsumer",
    "PullResult",
    "PullStatus",
    "PushConsumer",
    "SendResult",
    "SendStatus",
]
