"""make_app: the dashboard as an ASGI application."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from rewindmq.dashboard.data.cluster_source import ClusterSource
from rewindmq.dashboard.pages import load_pages
from rewindmq.dashboard.races.race_runs import RaceRuns
from rewindmq.dashboard.resets.history import MemoryHistory, ResetHistory
from rewindmq.dashboard.resets.service import ResetService
from rewindmq.dashboard.web.forms import MAX_FORM_BYTES, FormReader
from rewindmq.dashboard.web.links import message_href
from rewindmq.dashboard.web.login import login_routes
from rewindmq.dashboard.web.page import DashboardSettings, Page, Visit
from rewindmq.dashboard.web.safety import SafetyMiddleware, parse_form, same_text
from rewindmq.protocol.text import escape_controls

_HERE: Final = Path(__file__).parent


async def _absent(visit: Visit) -> Response:
    return visit.render("absent.html", 404, title="There is no such page")


_TOO_LONG: Final = f"A form has at most {MAX_FORM_BYTES} bytes.\n"
_ABSENT: Final = Page("/absent", _absent, "", is_tab=False)


def make_app(
    source: ClusterSource,
    settings: DashboardSettings,
    history: ResetHistory | None = None,
    races: RaceRuns | None = None,
) -> Starlette:
    """Return the application with every page of ``dashboard/pages/``.

    Args:
        history: of the watched resets; None: it ends with the application.
        races: plays the laboratory's races; None: with the worker of this package.
    """
    templates = _templates(settings)
    pages = load_pages()
    resets = ResetService(source, history or MemoryHistory())
    races = races or RaceRuns(source.runtime.timers)
    forms = FormReader(source.runtime.timers)

    def endpoint(page: Page) -> Callable[..., Awaitable[Response]]:
        return _endpoint(page, source, resets, races, forms, settings, templates, pages)

    routes = [Route(page.path, endpoint(page), methods=list(page.methods)) for page in pages]
    static = Mount("/static", StaticFiles(directory=_HERE / "static"))
    app = Starlette(
        routes=[*routes, *login_routes(settings, templates, forms), static],
        middleware=[Middleware(SafetyMiddleware, settings=settings)],
        exception_handlers={
            404: endpoint(_ABSENT),
            ClientDisconnect: _respond_to_nobody,
        },
        lifespan=lambda _app: resets.working(),
    )
    # A redirect would lead to whatever host the visitor's Host header names.
    app.router.redirect_slashes = False
    return app


async def _respond_to_nobody(request: Request, error: Exception) -> Response:
    """Return what no client reads: it closed its connection in the middle of its form."""
    return Response(status_code=400)


def _templates(settings: DashboardSettings) -> Environment:
    templates = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    field = Markup('<input type="hidden" name="csrf" value="{}">').format(settings.csrf)
    templates.globals["csrf_field"] = lambda: field
    templates.globals["message_href"] = message_href
    templates.filters["path"] = lambda text: quote(str(text), safe="")
    templates.filters["utc"] = lambda ms: _utc(ms).strftime("%Y-%m-%d %H:%M:%S UTC")
    # What the value of an <input type="datetime-local"> looks like.
    templates.filters["iso"] = lambda ms: _utc(ms).strftime("%Y-%m-%dT%H:%M:%S")
    templates.filters["thousands"] = lambda number: Markup(f"{number:,}".replace(",", "&#8239;"))  # noqa: S704
    templates.filters["lines"] = escape
    return templates


def _printable(value: object) -> object:
    """Escape the characters of a peer's text that do not print; ``|lines`` keeps its line feeds."""
    return escape_controls(value) if type(value) is str else value


def _utc(ms: int) -> datetime:
    """Return the time; one that no calendar has, which a peer may send, is the calendar's last second."""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return datetime.max.replace(tzinfo=UTC)


def _endpoint(
    page: Page,
    source: ClusterSource,
    resets: ResetService,
    races: RaceRuns,
    forms: FormReader,
    settings: DashboardSettings,
    templates: Environment,
    pages: tuple[Page, ...],
) -> Callable[..., Awaitable[Response]]:
    async def serve(request: Request, _error: Exception | None = None) -> Response:
        def visit(form: dict[str, str]) -> Visit:
            return Visit(request, source, resets, races, settings, templates, pages, page, form)

        if request.method != "POST" or "POST" not in page.methods:
            return await page.handler(visit({}))
        async with forms.reading(request, MAX_FORM_BYTES, _TOO_LONG) as body:
            # A form of 16 MiB takes seconds.
            form = await source.runtime.workers.run(parse_form, body)
            if not same_text(form.get("csrf", ""), settings.csrf):
                return PlainTextResponse(
                    "The form is of another start of this dashboard: load its page again.\n", 403
                )
            return await page.handler(visit(form))

    return serve
