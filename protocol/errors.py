"""One small hierarchy of errors; each that can travel carries its wire response code."""

from __future__ import annotations

from rewindmq.protocol.code import ResponseCode


class RewindMQError(Exception):
    """Root of every error this project raises on purpose."""


class FrameError(RewindMQError):
    """Bytes that are no frame: the connection they came on is beyond repair and must be closed."""


class RemotingError(RewindMQError):
    """A request did not get its answer for a reason below the protocol."""


class ConnectError(RemotingError):
    """No connection to the address could be made (MQClientException: connect to <addr> failed)."""


class ConnectionLostError(RemotingError):
    """The connection went away while the request was pending, or before it could be written."""


class RequestTimeoutError(RemotingError):
    """No answer within the request's time; the answer, should it still come, is dropped."""


class TooManyRequestsError(RemotingError):
    """No oneway permit within the time given (RemotingTooMuchRequestException)."""


class ResponseError(RewindMQError):
    """An answer other than success, as received from a peer or about to be sent to one.

    Attributes:
        code: the response code (docs/spec/protocol.md 4), an int because peers may send codes unknown here.
        remark: the peer's words, or "".
    """

    def __init__(self, code: int, remark: str | None = None) -> None:
        self.code = int(code)
        self.remark = remark or ""
        super().__init__(self.code, self.remark)

    def __str__(self) -> str:
        # The form mqadmin prints and scripts look for.
        return f"CODE: {self.code}  DESC: {self.remark}"


class RequestError(ResponseError):
    """A request that this process refuses: the answer is this code and remark, nothing changes."""


class HeaderError(RequestError):
    """A request whose fields are missing or of the wrong type."""

    def __init__(self, remark: str) -> None:
        super().__init__(ResponseCode.SYSTEM_ERROR, remark)


class BodyError(RequestError):
    """A structured body that does not decode to the shape its request code calls for."""

    def __init__(self, remark: str) -> None:
        super().__init__(ResponseCode.SYSTEM_ERROR, remark)


class ClientError(RewindMQError):
    """The client itself refuses or gives up: bad arguments, wrong state, no route."""


class UnknownOptionError(ClientError, TypeError):
    """A constructor was given an option that it does not have; names the one that was meant, if any."""


class ConfigError(RewindMQError):
    """A configuration file, option or environment variable that cannot be used as it stands."""
