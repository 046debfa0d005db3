"""Converts a handler's result or error to a response frame."""

from __future__ import annotations

import logging
from typing import Final

import msgspec

from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.command import FLAG_RESPONSE, RemotingCommand, SerializeType
from rewindmq.protocol.errors import RequestError, RewindMQError
from rewindmq.protocol.frame import encode_frame
from rewindmq.protocol.version import MQVersion

logger = logging.getLogger(__name__)

# Limit of one connection's requests in progress; the next request gets SYSTEM_BUSY (2).
MAX_REQUESTS_IN_PROGRESS: Final = 10_000
# Bytes of these requests' bodies and ext fields; above it, the next request gets SYSTEM_BUSY (2), too.
MAX_REQUEST_BYTES_IN_PROGRESS: Final = 32 << 20

_STRICT_JSON_KEY: Final = "acceptStandardJsonOnly"


def unsupported(request: RemotingCommand) -> RemotingCommand:
    """Return REQUEST_CODE_NOT_SUPPORTED (3) in the words of ``NettyRemotingAbstract`` (4.9.4)."""
    return RemotingCommand(
        ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=f" request type {request.code} not supported"
    )


def busy() -> RemotingCommand:
    """Return SYSTEM_BUSY (2) as ``NettyRemotingAbstract#processRequestCommand`` (4.9.4) does on overload."""
    return RemotingCommand(
        ResponseCode.SYSTEM_BUSY, remark="[OVERLOAD]system busy, start flow control for a while"
    )


def failure(request: RemotingCommand, error: BaseException) -> RemotingCommand:
    """Return the response for an error: its code and remark, or SYSTEM_ERROR (1) if it has none."""
    if isinstance(error, RequestError):
        return RemotingCommand(error.code, remark=error.remark)
    # These say what went wrong, and where on the disk; any other error is a defect, whose place matters.
    if isinstance(error, RewindMQError) or (isinstance(error, OSError) and error.filename is not None):
        logger.error("request code %d failed: %s", request.code, error)
    else:
        logger.error("request code %d failed", request.code, exc_info=error)
    return RemotingCommand(ResponseCode.SYSTEM_ERROR, remark=f"{type(error).__name__}: {error}")


def accepts_standard_json(request: RemotingCommand) -> bool:
    """Return whether the requester wants strict JSON bodies, by its version or an ext field.

    Specification: docs/spec/protocol.md 5.1.
    """
    if request.version >= MQVersion.V4_9_4:
        return True
    return str(request.ext.get(_STRICT_JSON_KEY, "")).lower() == "true"


def encode_reply(request: RemotingCommand, response: RemotingCommand) -> bytes:
    """Return the frame of the response, with the opaque and the serialization type of ``request``.

    A response that cannot be written (too large a frame or number) becomes SYSTEM_ERROR (1).
    """
    response.opaque = request.opaque
    response.flag = FLAG_RESPONSE
    serialize_type = request.serialize_type
    try:
        if isinstance(response.body, msgspec.Struct) and serialize_type != SerializeType.MSGPACK:
            strict = accepts_standard_json(request)
            return encode_frame(response, serialize_type, standard_json=strict)
        return encode_frame(response, serialize_type)
    except Exception as error:
        substitute = failure(request, error)
        substitute.opaque = request.opaque
        substitute.flag = FLAG_RESPONSE
        return encode_frame(substitute, serialize_type)
