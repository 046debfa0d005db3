"""A selector for ``Producer.send_with_selector``. Source: RocketMQ 4.9.4 ``SelectMessageQueueByHash``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rewindmq.protocol.message import Message
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.text import java_hash


def select_queue_by_hash(queues: Sequence[MessageQueue], message: Message, arg: Any) -> MessageQueue:
    """Return the same queue for equal arguments, while the topic's number of queues stays the same.

    Args:
        arg: hashed as by Java's ``hashCode``: an int as an Integer, anything else as the String of its text.
    """
    number = arg if isinstance(arg, int) else java_hash(str(arg))
    return queues[abs(number) % len(queues)]
