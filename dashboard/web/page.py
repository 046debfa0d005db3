"""Page: a path with its handler. Visit: one request for a page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from rewindmq.dashboard.data.cluster_source import ClusterSource


@dataclass(frozen=True)
class Settings:
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
class Visit:
    """One request for a page, with what its handler may use."""

    request: Request
    source: ClusterSource
    settings: Settings
    templates: Environment
    navigation: tuple[Page, ...]
    form: Mapping[str, str] = field(default_factory=dict)

    def path(self, name: str) -> str:
        """Return a part of the address, such as the group's name."""
        return str(self.request.path_params[name])

    def query(self, name: str, default: str = "") -> str:
        """Return a parameter of the address's query."""
        return self.request.query_params.get(name, default)

    def render(self, template: str, status: int = 200, **values: Any) -> Response:
        """Return the template's page; every value is escaped."""
        text = self.templates.get_template(template).render(
            visit=self, navigation=self.navigation, settings=self.settings, **values
        )
        return HTMLResponse(text, status)


@dataclass(frozen=True)
class Page:
    """A path with its handler.

    Attributes:
        path: Starlette's form, such as ``/topics/{topic}``.
        handler: returns the response.
        title: what the browser's tab shows.
        navigation: the page's entry in the navigation; None: it has none.
        methods: ("GET",) or ("POST",). POST pages get the checks of ``rewindmq.dashboard``'s docstring.
    """

    path: str
    handler: Callable[[Visit], Awaitable[Response]]
    title: str
    navigation: str | None = None
    methods: tuple[str, ...] = ("GET",)
