"""A person resets a running group in Chromium, and sees for each queue whether the reset held."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.dashboard.browser.conftest import Shop
from tools.dashboard.page_checks import faults_in_every_view
from tools.dashboard.reset_story import COUNT, confirm_reset, lose_reset, served_story

pytestmark = pytest.mark.asyncio(loop_scope="session")


@asynccontextmanager
async def person(browser: Browser, *, has_script: bool = True, width: int = 1200) -> AsyncIterator[Page]:
    """Yield a page; fail if its script raised, or the browser refused something of it."""
    context = await browser.new_context(
        java_script_enabled=has_script, viewport={"width": width, "height": 800}
    )
    page = await context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda line: complaints.append(line.text) if line.type == "error" else None)
    yield page
    await context.close()
    assert complaints == []


async def test_a_reset_that_holds_is_shown_as_proven(shop: Shop, tmp_path: Path) -> None:
    async with served_story(tmp_path) as story, person(shop.browser, width=360) as page:
        await confirm_reset(page, story, "fenced")
        await expect(page.locator("#verdict")).to_have_text("running")
        assert await faults_in_every_view(page) == []
        # The listener waits at the first message that comes again, so no sample misses the redelivery.
        await expect(page.locator("#verdict")).to_have_text("proven")
        cells = await page.locator("tbody td").all_text_contents()
        assert cells[:5] == ["broker-a/0", "proven", str(COUNT), "0", "0"]
        await expect(page.locator(".steps")).to_contain_text("redelivering")
        await expect(page.locator("figure.lanes")).to_contain_text("back to 0")
        assert await faults_in_every_view(page) == []
        await page.goto(f"{story.url}/resets")
        await expect(page.locator("tbody .badge")).to_have_text("proven")
        await expect(page.locator("tbody")).to_contain_text("1 proven")
        assert await faults_in_every_view(page) == []
        story.gate.set()
        await story.group.caught_up()
        assert story.heard == [*range(COUNT), *range(COUNT)]


async def test_a_reset_that_a_late_commit_overwrites_is_shown_as_lost_with_the_name_of_the_race(
    shop: Shop, tmp_path: Path
) -> None:
    """A second person looks on without script."""
    async with (
        served_story(tmp_path) as story,
        person(shop.browser) as page,
        person(shop.browser, has_script=False) as plain,
    ):
        await lose_reset(page, story)
        await plain.goto(page.url)
        for each in (page, plain):
            await expect(each.locator("#verdict")).to_have_text("lost")
            await expect(each.get_by_role("alert")).to_contain_text("the reset is lost in 1 of 1 queues")
            await expect(each.locator("tbody")).to_contain_text("(as in R1, R2, STALL)")
            assert await each.locator("tbody td").nth(4).text_content() == str(COUNT)
        assert await faults_in_every_view(page) == []
        # The drawing marks the step at which the reset was lost.
        await expect(page.locator("figure.lanes .offence-point")).to_be_visible()
