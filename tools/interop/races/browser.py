"""The stage of a race for real whose administrator resets from the dashboard's page, in Chromium."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from playwright.async_api import Browser, Page, expect

from rewindmq.dashboard.app import make_app
from rewindmq.dashboard.data.cluster_source import ClusterSource
from rewindmq.dashboard.serving import serving
from rewindmq.dashboard.web.page import DashboardSettings
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.race.errors import RaceError
from rewindmq.race.stage.operator import Operator
from tools.dashboard.chromium import chromium
from tools.dashboard.page_checks import faults_in_every_view
from tools.interop.races.stage import JavaStage

# A loss is named within 80 s of the reset; a redelivery is proven after 40 s.
_VERDICT_MS: Final = 180_000
# A JVM that has just started may answer late.
_ACCEPTED_MS: Final = 60_000
_RUNNING: Final = "running"


@dataclass(frozen=True, slots=True)
class ShownProof:
    """The page of a reset's proof as the browser showed it at the end.

    Attributes:
        verdict: such as ``lost``.
        alert: the sentence about the whole reset; "" if the page has none.
        rows: the cells of the table of queues.
        evidence: which races the evidence fits; "" if the page says none.
        lanes: all text of the drawing.
        offences: marks of a loss in the drawing that can be seen.
        faults: of the page's labels, contrast and width.
    """

    verdict: str
    alert: str
    rows: tuple[tuple[str, ...], ...]
    evidence: str
    lanes: str
    offences: int
    faults: tuple[str, ...]


class BrowserOperator(Operator):
    """Previews a reset to the oldest messages on the page, confirms it by the group's name, and looks on."""

    _page: Page
    _url: str
    _has_reset = False

    async def open(self, namesrv: str) -> None:
        """Connect, serve a dashboard, and open a browser."""
        await super().open(namesrv)
        enter = self._exits.enter_async_context
        settings = DashboardSettings("form-token", hosts=frozenset({"127.0.0.1"}))
        self._url = await enter(serving(make_app(ClusterSource(self._admin), settings), "127.0.0.1", 0))
        browser: Browser = await enter(chromium())
        self._page = await browser.new_page()

    async def reset(self, offset: int, queue: MessageQueue, *, is_direct: bool = False) -> None:
        """See ``Stage.reset``.

        Raises:
            RaceError: the race needs another reset than the form's to the oldest messages.
        """
        if offset != 0 or is_direct:
            raise RaceError("the page is asked for a reset to the oldest messages only")
        await super().reset(offset, queue)

    async def _ask(self, timestamp: int) -> Mapping[MessageQueue, int]:
        """Return the targets that the proof shows when the brokers have accepted the reset."""
        page = self._page
        await page.goto(f"{self._url}/groups/{self._group}")
        await page.get_by_role("link", name="Reset", exact=True).click()
        await page.get_by_label("Topic").fill(self.topic)
        await page.get_by_label("Go to").select_option("earliest")
        await page.get_by_role("button", name="Preview").click()
        await page.get_by_label("Type the group's name").fill(self._group)
        await page.get_by_role("button", name="Reset the group and watch it").click()
        await page.wait_for_url("**/resets/*")
        await expect(page.locator(".steps")).to_contain_text(
            "the brokers accepted the reset", timeout=_ACCEPTED_MS
        )
        self._has_reset = True
        targets = {}
        for name, _state, _before, target, *_ in await self._rows():
            broker, _, queue_id = name.rpartition("/")
            targets[MessageQueue(self.topic, broker, int(queue_id))] = int(target)
        return targets

    async def shown(self) -> ShownProof | None:
        """Wait for the verdict and return what the page shows; None if there was no reset."""
        if not self._has_reset:
            return None
        page = self._page
        await expect(page.locator("#verdict")).not_to_have_text(_RUNNING, timeout=_VERDICT_MS)
        alert, evidence = page.get_by_role("alert"), page.get_by_text("The evidence fits")
        marks = page.locator("figure.lanes .offence-point")
        return ShownProof(
            await page.locator("#verdict").inner_text(),
            await alert.inner_text() if await alert.count() else "",
            await self._rows(),
            await evidence.inner_text() if await evidence.count() else "",
            await page.locator("figure.lanes").inner_text(),
            sum([await mark.is_visible() for mark in await marks.all()]),
            tuple(await faults_in_every_view(page)),
        )

    async def _rows(self) -> tuple[tuple[str, ...], ...]:
        rows = await self._page.locator("tbody tr").all()
        return tuple([tuple(await row.locator("td").all_inner_texts()) for row in rows])


class BrowserStage(JavaStage):
    """A ``JavaStage`` that is at rest when the page has its verdict, too."""

    operator_type = BrowserOperator

    async def at_rest(self) -> None:
        """See ``JavaStage``."""
        await super().at_rest()
        assert isinstance(self._operator, BrowserOperator)
        self.shown = await self._operator.shown()
