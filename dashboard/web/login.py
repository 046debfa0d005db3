"""The login page, where a visitor enters the token once."""

from __future__ import annotations

from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from rewindmq.dashboard.web.forms import FormReader
from rewindmq.dashboard.web.page import DashboardSettings
from rewindmq.dashboard.web.safety import LOGIN, own_path, parse_form, same_text, session_cookie, session_of

_MAX_BYTES = 64 << 10


def login_routes(settings: DashboardSettings, templates: Environment, forms: FormReader) -> list[Route]:
    """Return the routes of the login page; none without a token."""
    if settings.token is None:
        return []
    token = settings.token

    def form(path: str, status: int = 200, *, is_wrong: bool = False) -> Response:
        text = templates.get_template("login.html").render(is_wrong=is_wrong, next=own_path(path))
        return HTMLResponse(text, status)

    async def login(request: Request) -> Response:
        if request.method != "POST":
            return form(request.query_params.get("next", "/"))
        async with forms.reading(request, _MAX_BYTES, "A token is shorter.\n") as body:
            fields = parse_form(body)
        path = own_path(fields.get("next", "/"))
        if not same_text(fields.get("token", ""), token):
            return form(path, 403, is_wrong=True)
        response = RedirectResponse(path, 303)
        name = session_cookie(request.scope)
        response.set_cookie(name, session_of(settings), httponly=True, samesite="strict")
        return response

    return [Route(LOGIN, login, methods=["GET", "POST"])]
