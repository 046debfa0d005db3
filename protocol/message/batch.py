"""The body of SEND_BATCH_MESSAGE (320): messages in sequence, without topic (docs/spec/protocol.md 6.6)."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Final

from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.limits import MAX_PROPERTIES_BYTES
from rewindmq.protocol.message.message import Message
from rewindmq.protocol.message.properties import format_properties

# Size of the entry, magic, body CRC (both 0: the broker computes its own), flag, length of the body.
_HEAD: Final = struct.Struct(">iiiii")
# The fields that a reader uses: size, flag and length of the body.
_HEAD_READ: Final = struct.Struct(">i8xii")
_PROPERTIES_LENGTH: Final = struct.Struct(">h")
_OVERHEAD: Final = _HEAD.size + _PROPERTIES_LENGTH.size
# Decoding, encoding and storing as many takes a millisecond.
RUN_MESSAGES: Final = 256


# One message of a batch: body, properties text, flag. A plain tuple, because a broker creates one for every
# message.
BatchMessage = tuple[bytes, bytes, int]


def encode_batch(messages: Sequence[Message]) -> bytes:
    """Return the batch body of ``messages``; their topics are ignored.

    Raises:
        RequestError: MESSAGE_ILLEGAL (13), a property text is malformed or longer than 32 767 bytes.
    """
    parts: list[bytes] = []
    for message in messages:
        body = message.body
        properties = format_properties(message.properties).encode()
        if len(properties) > MAX_PROPERTIES_BYTES:
            raise RequestError(
                ResponseCode.MESSAGE_ILLEGAL, f"the properties are over {MAX_PROPERTIES_BYTES} bytes"
            )
        size = _OVERHEAD + len(body) + len(properties)
        parts += (
            _HEAD.pack(size, 0, 0, message.flag, len(body)),
            body,
            _PROPERTIES_LENGTH.pack(len(properties)),
            properties,
        )
    return b"".join(parts)


def decode_batch(body: bytes, most: int | None = None) -> list[BatchMessage]:
    """Return the messages of a batch body; see ``decode_runs``."""
    return [message for run in decode_runs(body, most) for message in run]


def decode_runs(body: bytes, most: int | None = None) -> Iterator[list[BatchMessage]]:
    """Yield the messages of a batch body in runs of at most ``RUN_MESSAGES``, each less than 1 ms of work.

    Args:
        most: limit of the number of messages; None means no limit.

    Raises:
        RequestError: MESSAGE_ILLEGAL (13), no message, more than ``most``, or the lengths do not add up to
            exactly ``body``.
    """
    messages: list[BatchMessage] = []
    before = 0
    unpack_head = _HEAD_READ.unpack_from
    unpack_length = _PROPERTIES_LENGTH.unpack_from
    head_bytes = _HEAD.size
    length_bytes = _PROPERTIES_LENGTH.size
    position = 0
    end = len(body)
    try:
        while position < end:
            if len(messages) == RUN_MESSAGES:
                yield messages
                before += RUN_MESSAGES
                messages = []
            size, flag, body_length = unpack_head(body, position)
            body_at = position + head_bytes
            body_end = body_at + body_length
            (properties_length,) = unpack_length(body, body_end)
            properties_at = body_end + length_bytes
            position += size
            if (
                body_length < 0
                or properties_length < 0
                or properties_at + properties_length != position
                or position > end
            ):
                raise _illegal(f"lengths of message {before + len(messages)} do not add up")
            if before + len(messages) == most:
                raise _illegal(f"more than {most} messages")
            messages.append((body[body_at:body_end], body[properties_at:position], flag))
    except struct.error:
        raise _illegal(f"message {before + len(messages)} is cut short") from None
    if not messages:
        raise _illegal("no message")
    yield messages


def _illegal(fault: str) -> RequestError:
    return RequestError(ResponseCode.MESSAGE_ILLEGAL, f"batch body: {fault}")
