"""Messages, their records and properties: what is sent, stored and received."""

from rewindmq.protocol.message.message import Message, MessageExt

__all__ = ["Message", "MessageExt"]
