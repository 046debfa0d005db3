"""HttpRequest: one request to the control port, and the checks that need only its head."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from email.message import Message
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from io import BytesIO
from typing import Final
from urllib.parse import unquote, urlsplit

from rewindmq.protocol.errors import RewindMQError

MAX_BODY_BYTES: Final = 65_536
_MAX_FAULT: Final = 200
_LOCAL_HOSTS: Final = frozenset(("127.0.0.1", "localhost", "::1"))


class HttpError(RewindMQError):
    """The port refuses a request with this status; the text says what to do."""

    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request to the control port.

    Attributes:
        path: parts of the path, decoded, without the slashes.
        body: empty until it is read.
    """

    method: str
    path: tuple[str, ...]
    headers: Message
    body: bytes = b""


def parse_head(head: bytes) -> HttpRequest:
    """Parse the request line and the headers with the standard library's parser.

    Raises:
        HttpError: they are not HTTP/1.
    """
    parser = _HeadParser(head)
    if parser.fault is not None:
        raise HttpError(*parser.fault)
    if not parser.request_version.startswith("HTTP/1."):
        raise HttpError(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, "the control port needs HTTP/1.1")
    path = parser.path.partition("?")[0]
    parts = tuple(unquote(part) for part in path.split("/") if part)
    return HttpRequest(parser.command, parts, parser.headers)


def check_sender(headers: Message, token: str) -> None:
    """Require a program of this machine that knows the token; a web page must not reach the port.

    Raises:
        HttpError: 403 or 401.
    """
    if "Origin" in headers:
        raise HttpError(HTTPStatus.FORBIDDEN, "the control port does not serve web pages: omit Origin")
    hosts = headers.get_all("Host", [])
    if len(hosts) != 1 or _host_name(hosts[0]) not in _LOCAL_HOSTS:
        # A web page's own name may resolve to 127.0.0.1.
        raise HttpError(HTTPStatus.FORBIDDEN, "connect to 127.0.0.1 or localhost, and send that as Host")
    scheme, _, given = headers.get("Authorization", "").partition(" ")
    is_right = hmac.compare_digest(given.strip().encode("utf-8", "replace"), token.encode())
    if scheme.lower() != "bearer" or not is_right:
        raise HttpError(
            HTTPStatus.UNAUTHORIZED,
            "send the header Authorization: Bearer TOKEN; the token is in the file that rewindmq up names",
        )


def body_length(headers: Message) -> int:
    """Return the number of bytes of the body.

    Raises:
        HttpError: it is not stated, or too large.
    """
    if "Transfer-Encoding" in headers:
        raise HttpError(HTTPStatus.LENGTH_REQUIRED, "send Content-Length instead of Transfer-Encoding")
    lengths = headers.get_all("Content-Length", ["0"])
    text = lengths[0].strip()
    if len(lengths) != 1 or not (text.isascii() and text.isdigit()):
        raise HttpError(HTTPStatus.BAD_REQUEST, "send one Content-Length, a number of bytes")
    # A length of thousands of digits is not converted.
    if len(text) > 9 or int(text) > MAX_BODY_BYTES:
        raise HttpError(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is too large: send at most {MAX_BODY_BYTES} bytes"
        )
    return int(text)


class _HeadParser(BaseHTTPRequestHandler):
    """The standard library's parser without its socket.

    Attributes:
        fault: status and text if the head is wrong.
    """

    protocol_version = "HTTP/1.1"

    def __init__(self, head: bytes) -> None:
        self.fault: tuple[HTTPStatus, str] | None = None
        self.rfile = BytesIO(head)
        self.raw_requestline = self.rfile.readline()
        if not self.parse_request() and self.fault is None:
            self.fault = HTTPStatus.BAD_REQUEST, "the request line is empty"

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Note what is wrong."""
        # The standard library quotes the request line.
        self.fault = HTTPStatus(code), (message or HTTPStatus(code).phrase)[:_MAX_FAULT]

    def handle_expect_100(self) -> bool:
        """Accept the header; the server answers it before it reads the body."""
        return True


def _host_name(host: str) -> str | None:
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None
