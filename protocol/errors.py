"""The errors of the project; an error that can be sent to a peer has a response code."""

from __future__ import annotations

from rewindmq.protocol.code import ResponseCode


class RewindMQError(Exception):
    """Base of every error that this project defines."""


class FrameError(RewindMQError):
    """Bytes that are not a frame: the receiver must close their connection."""


class ForeignProtocolError(FrameError):
    """The peer speaks another protocol, which the text names."""


class RemotingError(RewindMQError):
    """A request got no response because of the connection, a time-out or a limit."""


class ConnectError(RemotingError):
    """The client could not connect to the address (MQClientException: connect to <addr> failed)."""


class ConnectionLostError(RemotingError):
    """The connection closed while the request was pending, or before the client wrote it."""


class UnreadableResponseError(RemotingError):
    """A response, or one of the bytes that arrived before it, cannot be read.

    The peer may have done what the request asks, so a client does not repeat a request that must be done
    once.
    """


class RequestTimeoutError(RemotingError):
    """No response arrived within the request's timeout; the client drops a later response."""


class NotConnectedError(RequestTimeoutError):
    """The client was not connected within the request's timeout, so the request was not sent."""


class TooManyRequestsError(RemotingError):
    """Too many requests wait already (RemotingTooMuchRequestException)."""


class ResponseError(RewindMQError):
    """A response other than success, received from a peer or about to be sent to a peer.

    Attributes:
        code: the response code (docs/spec/protocol.md 4), an int because peers may send unknown codes.
        remark: the text of the response, or "".
    """

    def __init__(self, code: int, remark: str | None = None) -> None:
        self.code = int(code)
        self.remark = remark or ""
        super().__init__(self.code, self.remark)

    def __str__(self) -> str:
        # mqadmin prints this form, and scripts search for it.
        return f"CODE: {self.code}  DESC: {self.remark}"


class RequestError(ResponseError):
    """A refused request: the response has this code and remark, and nothing changes."""


class HeaderError(RequestError):
    """A request whose fields are missing or of the wrong type."""

    def __init__(self, remark: str) -> None:
        super().__init__(ResponseCode.SYSTEM_ERROR, remark)


class BodyError(RequestError):
    """A structured body that does not decode to the type of its request code."""

    def __init__(self, remark: str) -> None:
        super().__init__(ResponseCode.SYSTEM_ERROR, remark)


class ClientError(RewindMQError):
    """The client refuses a call or gives up: bad arguments, wrong state or no route."""


class ReplyTimeoutError(ClientError, RequestTimeoutError):
    """The request of ``Producer.request`` was sent, but no reply arrived in time (RequestTimeoutException).

    A consumer may still handle the request; the client drops a late reply.

    Attributes:
        code: RocketMQ's ``ClientErrorCode.REQUEST_TIMEOUT_EXCEPTION``.
    """

    code = 10_006


class UnknownOptionError(ClientError, TypeError):
    """A constructor got an unknown option; the text suggests the nearest known name, if any."""


class ConfigError(RewindMQError):
    """A configuration file, option or environment variable is missing or invalid."""
