"""A dashboard served by uvicorn at a free port, beside a real cluster of its own processes."""

from __future__ import annotations

import asyncio
import http.client
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

from rewindmq import AdminClient
from rewindmq.dashboard.app import make_app
from rewindmq.dashboard.data.cluster_source import ClusterSource
from rewindmq.dashboard.serving import serving
from rewindmq.dashboard.web.page import Settings

HOSTS = frozenset({"127.0.0.1", "localhost"})


class Answered(NamedTuple):
    status: int
    headers: Mapping[str, str]
    text: str


class Site:
    """A served dashboard."""

    def __init__(self, url: str, settings: Settings) -> None:
        self.url = url
        self.settings = settings

    async def get(self, path: str, **headers: str) -> Answered:
        return await asyncio.to_thread(self._ask, "GET", path, None, headers)

    async def post(self, path: str, fields: Mapping[str, str], **headers: str) -> Answered:
        return await asyncio.to_thread(self._ask, "POST", path, urlencode(fields), headers)

    def _ask(self, method: str, path: str, body: str | None, headers: Mapping[str, str]) -> Answered:
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=30)
        try:
            sent = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, sent)
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Answered(response.status, found, response.read().decode())
        finally:
            connection.close()


@asynccontextmanager
async def dashboard(namesrv: str, settings: Settings | None = None) -> AsyncIterator[Site]:
    """Serve every page; the block's value asks for them."""
    settings = settings or Settings("form-token", hosts=HOSTS)
    async with (
        AdminClient(namesrv) as admin,
        serving(make_app(ClusterSource(admin), settings), "127.0.0.1", 0) as url,
    ):
        yield Site(url, settings)
