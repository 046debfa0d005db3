"""A dashboard served by uvicorn at a free port, beside a real cluster of its own processes."""

from __future__ import annotations

import asyncio
import http.client
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

from rewindmq import AdminClient
from rewindmq.dashboard.app import make_app
from rewindmq.dashboard.data.cluster_source import ClusterSource
from rewindmq.dashboard.resets.history import open_folder
from rewindmq.dashboard.serving import serving
from rewindmq.dashboard.web.page import DashboardSettings
from rewindmq.protocol.remoting.runtime import Runtime

HOSTS = frozenset({"127.0.0.1", "localhost"})


class Answered(NamedTuple):
    status: int
    headers: Mapping[str, str]
    text: str


class Site:
    """A served dashboard."""

    def __init__(self, url: str, settings: DashboardSettings) -> None:
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
async def dashboard(
    namesrv: str,
    settings: DashboardSettings | None = None,
    *,
    history: Path | None = None,
    time_scale: float | None = None,
    runtime: Runtime | None = None,
) -> AsyncIterator[Site]:
    """Serve every page; the block's value asks for them.

    Args:
        history: the folder of the watched resets; None: they are in memory.
        time_scale: that of the cluster.
        runtime: clock, timers and threads of the test's choice, instead of ``time_scale``.
    """
    settings = settings or DashboardSettings("form-token", hosts=HOSTS)
    async with AsyncExitStack() as stack:
        admin = await stack.enter_async_context(AdminClient(namesrv, time_scale=time_scale, runtime=runtime))
        kept = None
        if history is not None:
            kept = await stack.enter_async_context(open_folder(history, admin.runtime.workers))
        app = make_app(ClusterSource(admin), settings, kept)
        yield Site(await stack.enter_async_context(serving(app, "127.0.0.1", 0)), settings)
