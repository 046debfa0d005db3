"""SafetyMiddleware: host, token, origin, read-only mode and security headers, before any page runs."""

from __future__ import annotations

import hashlib
import hmac
from typing import Final
from urllib.parse import quote, unquote_to_bytes, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rewindmq.dashboard.web.page import DashboardSettings

# With the port behind it: browsers send a host's cookies to all of its ports.
_SESSION_COOKIE: Final = "rewindmq_dashboard"
LOGIN: Final = "/login"
_SAFE_METHODS: Final = ("GET", "HEAD")
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self';"
    " img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # With no-referrer, browsers send "Origin: null" with the forms of this very site.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_NO_STORE: Final = "no-store"
_MAX_FIELDS: Final = 1000
_PART_BYTES: Final = 65_536


class SafetyMiddleware:
    """Refuse what a visitor may not do, and add the security headers to every response."""

    def __init__(self, app: ASGIApp, settings: DashboardSettings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", _NO_STORE)
            await send(message)

        refusal = self._refusal(scope)
        await (refusal or self._app)(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        """Return the response to a request that may not go on; None: it may."""
        headers, method, path = Headers(scope=scope), scope["method"], scope["path"]
        if self._settings.hosts and _host_name(headers.get("host", "")) not in self._settings.hosts:
            return PlainTextResponse("This dashboard does not serve that host name.\n", 421)
        if method not in _SAFE_METHODS and not _is_same_origin(headers):
            return PlainTextResponse("A page of another site sent this request; it is refused.\n", 403)
        is_open = path == LOGIN or path.startswith("/static/")
        if not is_open and not self._knows_token(scope):
            if method in _SAFE_METHODS and "text/html" in headers.get("accept", ""):
                return RedirectResponse(f"{LOGIN}?next={quote(_asked_for(scope), safe='')}", 303)
            return PlainTextResponse("Send the dashboard's token as Authorization: Bearer TOKEN.\n", 401)
        if self._settings.read_only and method not in _SAFE_METHODS and path != LOGIN:
            return PlainTextResponse(
                "This dashboard is read-only: start it without --read-only to change the cluster.\n", 403
            )
        return None

    def _knows_token(self, scope: Scope) -> bool:
        token = self._settings.token
        if token is None:
            return True
        connection = HTTPConnection(scope)
        scheme, _, sent = connection.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and same_text(sent.strip(), token):
            return True
        return same_text(connection.cookies.get(session_cookie(scope), ""), session_of(self._settings))


def session_cookie(scope: Scope) -> str:
    """Return the cookie's name: of two dashboards of one host, none logs out the other's visitors."""
    server = scope.get("server")
    port = server[1] if server else None
    return f"{_SESSION_COOKIE}_{port}" if port else _SESSION_COOKIE


def own_path(text: str) -> str:
    r"""Return the text if it is the path of a page of this site, else the front page's.

    Browsers read ``//host`` and ``/\host`` as another host, and drop tabs and line breaks before they look.
    """
    is_own = text.startswith("/") and not text.startswith("//") and "\\" not in text and text.isprintable()
    return text if is_own and urlsplit(text).path != LOGIN else "/"


def session_of(settings: DashboardSettings) -> str:
    """Return the cookie of a visitor who knows the token; it hides the token, and ends with the process."""
    return hmac.new(settings.csrf.encode(), (settings.token or "").encode(), hashlib.sha256).hexdigest()


def same_text(left: str, right: str) -> bool:
    """Compare two secrets in a time that does not depend on where they differ."""
    return hmac.compare_digest(left.encode("utf-8", "surrogatepass"), right.encode("utf-8", "surrogatepass"))


def parse_form(body: bytes) -> dict[str, str]:
    """Return the fields of an ``application/x-www-form-urlencoded`` body; of two with one name, the last.

    Raises:
        HTTPException: the form has too many fields.
    """
    if body.count(b"&") >= _MAX_FIELDS:
        raise HTTPException(400, f"A form has at most {_MAX_FIELDS} fields.\n")
    pairs = (field.partition(b"=") for field in body.split(b"&") if field)
    return {_decoded(name): _decoded(value) for name, _, value in pairs}


def _decoded(data: bytes) -> str:
    """Return a text that a form has encoded."""
    # ``unquote_to_bytes`` makes an object of each escape, so it gets a part at a time.
    data = data.replace(b"+", b" ")
    decoded = bytearray()
    begin = 0
    while begin < len(data):
        end = begin + _PART_BYTES
        # No escape is cut in two.
        cut = data.rfind(b"%", end - 2, end)
        end = cut if cut != -1 else end
        decoded += unquote_to_bytes(data[begin:end])
        begin = end
    return decoded.decode("utf-8", "replace")


def _asked_for(scope: Scope) -> str:
    """Return the path and the query as the browser sent them."""
    path = scope.get("raw_path") or quote(scope["path"]).encode()
    query = scope["query_string"]
    return (path + (b"?" + query if query else b"")).decode("latin-1")


def _is_same_origin(headers: Headers) -> bool:
    """Return False if a browser says that another site's page sent the request; other clients say nothing."""
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = headers.get("origin")
    try:
        return origin is None or urlsplit(origin).netloc == headers.get("host", "")
    except ValueError:
        return False


def _host_name(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
