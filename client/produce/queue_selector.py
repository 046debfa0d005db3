"""A selector for ``Producer.send_with_selector``. Source: RocketMQ 4.9.4 ``SelectMessageQueueByHash``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rewindmq.protocol.message import Message
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.text import java_hash


def select_queue_by_hash(queues: Sequence[MessageQueue], message: Message, arg: Any) -> MessageQueue:
    """The queue that everything with this argument goes to, while the topic has as many queues.

    Args:
        arg: an int, or anything else by its text; as Java's ``hashCode`` of an Integer or a String.
    """
    number = arg if isinstance(arg, int) else java_hash(str(arg))
    return queues[abs(number) % len(queues)]
