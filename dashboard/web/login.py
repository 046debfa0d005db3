"""The login page, where a visitor enters the token once."""

from __future__ import annotations

from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from rewindmq.dashboard.web.page import Settings
from rewindmq.dashboard.web.safety import LOGIN, SESSION_COOKIE, parse_form, same_text, session_of

_MAX_BYTES = 64 << 10


def login_routes(settings: Settings, templates: Environment) -> list[Route]:
    """Return the routes of the login page; none without a token."""
    if settings.token is None:
        return []
    token = settings.token

    def form(status: int = 200, *, is_wrong: bool = False) -> Response:
        return HTMLResponse(templates.get_template("login.html").render(is_wrong=is_wrong), status)

    async def login(request: Request) -> Response:
        if request.method != "POST":
            return form()
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > _MAX_BYTES:
                return PlainTextResponse("A token is shorter.\n", 413)
        if not same_text(parse_form(bytes(body)).get("token", ""), token):
            return form(403, is_wrong=True)
        response = RedirectResponse("/", 303)
        response.set_cookie(SESSION_COOKIE, session_of(settings), httponly=True, samesite="strict")
        return response

    return [Route(LOGIN, login, methods=["GET", "POST"])]
