"""Page: a path with its handler. Visit: one request for a page."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final
from urllib.parse import quote

from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from rewindmq.dashboard.data.cluster_source import ClusterSource
from rewindmq.dashboard.races.race_runs import RaceRuns
from rewindmq.dashboard.resets.service import ResetService
from rewindmq.dashboard.web.events import event_stream

# Seconds after which a live part is rendered again.
LIVE_SECONDS: Final = 2.0
_PARAMETER: Final = re.compile(r"\{(\w+)(:\w+)?\}")


@dataclass(frozen=True)
class DashboardSettings:
    """How a dashboard is served.

    Attributes:
        read_only: every request that is not GET or HEAD is refused with 403.
        token: what a visitor must know; None: every visitor may enter.
        csrf: random text that every form of this process carries.
        hosts: names that the Host header may have, without port; empty: any.
    """

    csrf: str
    read_only: bool = False
    token: str | None = None
    hosts: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Tab:
    """A link to a page about the same topic or group."""

    href: str
    title: str
    is_current: bool


@dataclass(frozen=True)
class Visit:
    """One request for a page, with what its handler may use.

    Attributes:
        pages: every page of the dashboard.
        page: the one that is visited.
    """

    request: Request
    source: ClusterSource
    resets: ResetService
    races: RaceRuns
    settings: DashboardSettings
    templates: Environment
    pages: tuple[Page, ...]
    page: Page
    form: Mapping[str, str] = field(default_factory=dict)

    def path(self, name: str) -> str:
        """Return a part of the address, such as the group's name."""
        return str(self.request.path_params[name])

    def query(self, name: str, default: str = "") -> str:
        """Return a parameter of the address's query."""
        return self.request.query_params.get(name, default)

    @property
    def navigation(self) -> list[Tab]:
        """Return the entries of every page's navigation."""
        first = self.page.path.split("/")[1]
        return [
            Tab(page.path, page.navigation, page.path.split("/")[1] == first)
            for page in sorted(self.pages, key=lambda each: each.place)
            if page.navigation is not None
        ]

    @property
    def tabs(self) -> list[Tab]:
        """Return the pages about the same topic or group: ``/groups/{group}`` and one word more."""
        stem = "/".join(self.page.path.split("/")[:3])
        if not stem.endswith("}"):
            return []
        found = [
            Tab(self.href(page.path), page.title, page is self.page)
            for page in self.pages
            if page.methods == ("GET",)
            and page.is_tab
            and (page.path == stem or page.path.rpartition("/")[0] == stem)
            and "{" not in page.path.removeprefix(stem)
        ]
        # The page that the others are parts of stands first.
        found.sort(key=lambda tab: len(tab.href.split("/")))
        return found if len(found) > 1 else []

    def href(self, path: str) -> str:
        """Return a page's path with this request's parameters, quoted."""
        return _PARAMETER.sub(lambda match: quote(self.path(match[1]), safe=""), path)

    def render(self, template: str, status: int = 200, **values: Any) -> Response:
        """Return the template's page; every value is escaped."""
        return HTMLResponse(self.text(template, **values), status)

    async def render_large(self, template: str, status: int = 200, **values: Any) -> Response:
        """Return the page as ``render`` does. A worker thread makes it: many rows would hold the event loop.

        No other task may change the values meanwhile.
        """
        return HTMLResponse(await self._text_in_thread(template, values), status)

    async def _text_in_thread(self, template: str, values: Mapping[str, Any]) -> str:
        return await self.source.runtime.workers.run(partial(self.text, template, **values))

    def text(self, template: str, **values: Any) -> str:
        """Return the template's text; every value is escaped."""
        return self.templates.get_template(template).render(visit=self, settings=self.settings, **values)

    async def live(
        self, template: str, values: Callable[[], Awaitable[Mapping[str, Any]]], *, is_large: bool = False
    ) -> Response:
        """Return the page, or with the query ``live`` its live part as events.

        The page's template includes its part, ``NAME_part.html`` for ``NAME.html``, in an element with
        ``data-events``. ``values`` is asked again for every event. Its ``status`` is the page's,
        200 if it has none.

        Args:
            is_large: the page is made like that of ``render_large``.
        """
        part = template.replace(".html", "_part.html")
        if "live" not in self.request.query_params:
            found = dict(await values())
            status = found.pop("status", 200)
            if is_large:
                return await self.render_large(template, status, **found)
            return self.render(template, status, **found)

        async def render() -> str:
            found = await values()
            return await self._text_in_thread(part, found) if is_large else self.text(part, **found)

        return event_stream(render, self.source.runtime.timers, LIVE_SECONDS)


@dataclass(frozen=True)
class Page:
    """A path with its handler.

    Attributes:
        path: Starlette's form, such as ``/topics/{topic}``.
        handler: returns the response.
        title: what the browser's tab shows, and the tab of a page about a topic or group.
        navigation: the page's entry in the navigation; None: it has none.
        place: entries stand in the order of their places.
        methods: ("GET",) or ("POST",). POST pages get the checks of ``rewindmq.dashboard``'s docstring.
        is_tab: False keeps a page about a topic or group out of the row of tabs.
    """

    path: str
    handler: Callable[[Visit], Awaitable[Response]]
    title: str
    navigation: str | None = None
    methods: tuple[str, ...] = ("GET",)
    is_tab: bool = True
    place: int = 9
