"""Time of each page of the dashboard and of its metrics, at a broker with many topics, groups and queues."""

from __future__ import annotations

import asyncio
import gc
import html
import http.client
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final, NamedTuple
from urllib.parse import urlencode, urlsplit

from bench.cluster_start import cpu_seconds
from bench.dashboard_cluster import BUSY, GROUP, MANY, RECORDS, WIDE, WIDE_GROUP, LargeCluster, record_id
from rewindmq import AdminClient
from rewindmq.dashboard.app import make_app
from rewindmq.dashboard.data.cluster_source import ClusterSource
from rewindmq.dashboard.resets.history import open_folder
from rewindmq.dashboard.serving import serving
from rewindmq.dashboard.web.page import DashboardSettings
from rewindmq.protocol.remoting.process.collector import tune_collector

_CSRF: Final = "bench"
_WIDE_RESET: Final = f"/groups/{WIDE_GROUP}/reset?topic={WIDE}&to=earliest"
# By the page's name. In their order: the last page resets a group, whose watch costs the pages after it.
PAGES: Final = {
    "clusters": "/",
    "one broker": "/brokers/broker-a/0",
    "topics": "/topics",
    "topics by name": "/topics?q=99",
    "one topic": f"/topics/{BUSY}",
    "one topic of 1,000 queues": f"/topics/{WIDE}",
    "its groups": f"/topics/{BUSY}/groups",
    "its newest messages": f"/topics/{BUSY}/messages",
    "its messages by key": f"/topics/{BUSY}/messages?by=key&q=key-3",
    "its messages by time": f"/topics/{BUSY}/messages?by=time&at=0",
    "one message": f"/topics/{BUSY}/messages/broker-a/3/1",
    "form of a send": f"/topics/{BUSY}/send",
    "groups": "/groups",
    "groups by name": "/groups?q=99",
    "one group, of 100 queues": f"/groups/{GROUP}",
    "one group, of 1,000 queues": f"/groups/{WIDE_GROUP}",
    "one group, of 50,000 queues": f"/groups/{MANY}",
    "its 20 consumers": f"/groups/{GROUP}/consumers",
    "their stacks": f"/groups/{GROUP}/stacks",
    "its dead letters": f"/groups/{GROUP}/dead-letters",
    "its fenced commits": f"/groups/{GROUP}/fenced",
    "two groups compared": f"/groups/{GROUP}/compare?with=group-0008",
    "two groups compared, 50,000 queues": f"/groups/{GROUP}/compare?with={MANY}",
    "form of a reset": f"/groups/{GROUP}/reset",
    "preview of a reset, 100 queues": f"/groups/{GROUP}/reset?topic={BUSY}&to=earliest",
    "preview of a reset, 1,000 queues": _WIDE_RESET,
    "preview of a clone, 100 queues": f"/groups/group-0008/reset?topic={BUSY}&to=group&as={GROUP}",
    "history of 1,000 resets": "/resets",
    "history by name": "/resets?q=group-09",
    "proof of 1,000 queues": f"/resets/{record_id(RECORDS - 1)}",
    "races": "/races",
    "one race": "/races/R1",
}
# They are measured in this order, after the pages: the watch of the reset goes on behind the last one.
CONFIRM: Final = "confirm a reset, 1,000 queues"
RUNNING: Final = "proof of 1,000 queues that are being watched"
# A scrape may take 7 s, so it has no target.
SCRAPE: Final = "metrics, a new scrape"
METRICS: Final = "metrics, of a scrape before"
NAMES: Final = (*PAGES, CONFIRM, RUNNING, SCRAPE, METRICS)
_EXPECTED: Final = re.compile(r'name="expected" value="([^"]*)"')


class PageCost(NamedTuple):
    """What a page took, in ms.

    Attributes:
        wall: from the request to the last byte.
        cpu: processor time of the dashboard, the browser's part in this process, and the servers.
        hold: the longest processor time of the event loop's thread between two looks at it, 1 ms apart.
    """

    wall: float
    cpu: float
    hold: float


class _Holds:
    """Looks at the event loop every ms; ``longest`` is the processor time of its thread between two looks."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def look(self) -> None:
        last = time.thread_time()
        while True:
            await asyncio.sleep(0.001)
            now = time.thread_time()
            self.longest, last = max(self.longest, now - last), now


async def costs(large: LargeCluster) -> dict[str, PageCost]:
    """Return what each page takes, by the page's name."""
    # As the command's own process does; the loads after this one get their collector back.
    thresholds = gc.get_threshold()
    tune_collector()
    try:
        return await _costs(large)
    finally:
        gc.set_threshold(*thresholds)


async def _costs(large: LargeCluster) -> dict[str, PageCost]:
    cluster = large.cluster
    pids = [process.pid for process in (*cluster.brokers.values(), cluster.namesrv)]
    async with AsyncExitStack() as stack:
        admin = await stack.enter_async_context(AdminClient(cluster.namesrv_address))
        history = await stack.enter_async_context(open_folder(large.history, admin.runtime.workers))
        app = make_app(ClusterSource(admin), DashboardSettings(_CSRF), history)
        url = await stack.enter_async_context(serving(app, "127.0.0.1", 0))
        holds = await stack.enter_async_context(_looking())
        browser = _Browser(urlsplit(url).netloc, pids, holds)
        # The first page opens the connections and compiles the templates.
        for path in PAGES.values():
            await asyncio.to_thread(browser.get, path)
        found = {
            name: await asyncio.to_thread(browser.measure, browser.get, path) for name, path in PAGES.items()
        }
        form = await asyncio.to_thread(browser.form)
        found[CONFIRM] = await asyncio.to_thread(browser.measure, browser.post, _WIDE_RESET, form)
        await asyncio.to_thread(browser.wait_until_watched)
        found[RUNNING] = await asyncio.to_thread(browser.measure, browser.get, browser.location)
        browser.close()
        found[SCRAPE], found[METRICS] = await _scrapes(admin, pids)
        return found


async def _scrapes(admin: AdminClient, pids: list[int]) -> list[PageCost]:
    """Measure the metrics of a dashboard that has none yet, and those that it has kept."""
    app = make_app(ClusterSource(admin), DashboardSettings(_CSRF))
    async with serving(app, "127.0.0.1", 0) as url, _looking() as holds:
        browser = _Browser(urlsplit(url).netloc, pids, holds)
        found = [await asyncio.to_thread(browser.measure, browser.get, "/metrics") for _ in range(2)]
        browser.close()
        return found


@asynccontextmanager
async def _looking() -> AsyncIterator[_Holds]:
    holds = _Holds()
    task = asyncio.ensure_future(holds.look())
    try:
        yield holds
    finally:
        task.cancel()


class _Browser:
    """One connection to the dashboard."""

    def __init__(self, address: str, pids: list[int], holds: _Holds) -> None:
        self._connection = http.client.HTTPConnection(address, timeout=60)
        self._pids = pids
        self._holds = holds
        self.location = ""

    def close(self) -> None:
        self._connection.close()

    def measure(self, work: Callable[..., object], *arguments: object) -> PageCost:
        self._holds.longest = 0.0
        began, cpu = time.perf_counter(), self._cpu()
        work(*arguments)
        wall, cpu = time.perf_counter() - began, self._cpu() - cpu
        return PageCost(wall * 1e3, cpu * 1e3, self._holds.longest * 1e3)

    def _cpu(self) -> float:
        return time.process_time() + sum(map(cpu_seconds, self._pids))

    def wait_until_watched(self) -> None:
        """Wait until the brokers have accepted the reset."""
        while "accepted the reset" not in (page := self.get(self.location)):
            assert 'id="verdict">running<' in page, page

    def get(self, path: str) -> str:
        self._connection.request("GET", path)
        response = self._connection.getresponse()
        text = response.read().decode()
        assert response.status == 200, f"{path}: {response.status}"
        # The proof of a lost reset has an alert, too.
        assert 'role="alert"' not in text or path.startswith("/resets/"), f"{path}: {text}"
        return text

    def form(self) -> dict[str, str]:
        """Return the fields that confirm the preview of the wide topic."""
        found = _EXPECTED.search(self.get(_WIDE_RESET))
        assert found is not None
        return {"csrf": _CSRF, "expected": html.unescape(found[1]), "name": WIDE_GROUP}

    def post(self, path: str, fields: dict[str, str]) -> None:
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        self._connection.request("POST", path, urlencode(fields), headers)
        response = self._connection.getresponse()
        text = response.read().decode()
        assert response.status == 303, f"{path}: {response.status} {text}"
        self.location = response.headers["location"]
