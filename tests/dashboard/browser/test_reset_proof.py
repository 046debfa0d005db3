"""A person resets a running group in Chromium, and sees for each queue whether the reset held."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest
from playwright.async_api import Browser, Page, expect

from rewindmq import MessageExt
from rewindmq.testing import Group, Rmq, Topic
from rewindmq.testing.clusters.cluster_pool import ClusterPool
from rewindmq.testing.clusters.options import ClusterOptions
from tests.dashboard.browser.checks import faults_of
from tests.dashboard.browser.conftest import Shop
from tests.dashboard.site import Site, dashboard

pytestmark = pytest.mark.asyncio(loop_scope="session")
# A proof takes 40 s of the cluster's time.
SCALE: Final = 0.1
COUNT: Final = 6


@dataclass
class Story:
    """A group whose listener takes 2 s for a message, and a dashboard with a history."""

    rmq: Rmq
    site: Site
    topic: Topic
    group: Group
    heard: list[MessageExt]
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    again: asyncio.Event = field(default_factory=asyncio.Event)


@asynccontextmanager
async def story(history: Path) -> AsyncIterator[Story]:
    with ClusterPool() as pool:
        servers = pool.get(ClusterOptions(brokers=1, time_scale=SCALE))
        async with (
            Rmq(servers, wire=True) as rmq,
            dashboard(servers.namesrv_address, history=history, time_scale=SCALE) as site,
        ):
            topic = await rmq.topic("orders", queues=1)
            await topic.send_many([b"%d" % number for number in range(COUNT)])
            heard: list[MessageExt] = []

            async def listen(messages: Sequence[MessageExt]) -> None:
                is_again = bool(heard) and messages[0].queue_offset < heard[-1].queue_offset
                heard.extend(messages)
                if is_again:
                    told.again.set()
                    await told.gate.wait()
                await rmq.admin.runtime.timers.sleep(2.0)

            group = rmq.push("billing", topic, listen, consume_thread_max=1)
            told = Story(rmq, site, topic, group, heard)
            async with group:
                await group.caught_up()
                try:
                    yield told
                finally:
                    told.gate.set()


async def reset_from_the_page(page: Page, told: Story, mode: str) -> None:
    """Go from the group's page to its reset, and confirm it."""
    await page.goto(f"{told.site.url}/groups/{told.group}")
    await page.get_by_role("link", name="Reset", exact=True).click()
    await page.get_by_role("button", name="Preview").click()
    await expect(page.locator("dd").first).to_have_text(f"{COUNT} messages")
    await page.get_by_label("Mode").select_option(mode)
    await page.get_by_label("Type the group's name").fill(str(told.group))
    assert await faults_of(page) == []
    await page.get_by_role("button", name="Reset the group and watch it").click()
    await page.wait_for_url("**/resets/*")


@asynccontextmanager
async def person(browser: Browser, *, has_script: bool = True) -> AsyncIterator[Page]:
    """Yield a page; fail if its script raised, or the browser refused something of it."""
    context = await browser.new_context(java_script_enabled=has_script)
    page = await context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda line: complaints.append(line.text) if line.type == "error" else None)
    yield page
    await context.close()
    assert complaints == []


async def test_a_reset_that_holds_is_shown_as_proven(shop: Shop, tmp_path: Path) -> None:
    async with story(tmp_path) as told, person(shop.browser) as page:
        told.gate.set()
        await reset_from_the_page(page, told, "fenced")
        await expect(page.locator("#verdict")).to_have_text("running")
        assert await faults_of(page) == []
        await expect(page.locator("#verdict")).to_have_text("proven")
        cells = await page.locator("tbody td").all_text_contents()
        assert cells[:5] == ["broker-a/0", "proven", str(COUNT), "0", str(COUNT)]
        await expect(page.locator(".steps")).to_contain_text("redelivering")
        await expect(page.locator("figure.lanes")).to_contain_text("back to 0")
        assert await faults_of(page) == []
        await page.get_by_role("link", name="Resets").first.click()
        await expect(page.locator("tbody .badge")).to_have_text("proven")
        await expect(page.locator("tbody")).to_contain_text("1 proven")
        assert await faults_of(page) == []
    assert [message.queue_offset for message in told.heard] == [*range(COUNT), *range(COUNT)]


async def test_a_reset_that_a_late_commit_overwrites_is_shown_as_lost_with_the_name_of_the_race(
    shop: Shop, tmp_path: Path
) -> None:
    """A commit from before the reset is held on the wire, and arrives after the redelivery has begun."""
    async with (
        story(tmp_path) as told,
        person(shop.browser) as page,
        person(shop.browser, has_script=False) as plain,
    ):
        held = await told.rmq.on("UPDATE_CONSUMER_OFFSET", group=told.group).hold()
        await held.met()
        await reset_from_the_page(page, told, "")
        await plain.goto(page.url)
        await expect(plain.locator("#verdict")).to_have_text("running")
        await asyncio.wait_for(told.again.wait(), 60)
        # The consumer would repair the loss with its next commit.
        await told.rmq.on("UPDATE_CONSUMER_OFFSET", group=told.group, times=None).drop().optional()
        held.release()
        for each in (page, plain):
            await expect(each.locator("#verdict")).to_have_text("lost")
            await expect(each.get_by_role("alert")).to_contain_text("the reset is lost in 1 of 1 queues")
            await expect(each.locator("tbody")).to_contain_text("(as in R1, R2, STALL)")
            assert await each.locator("tbody td").nth(4).text_content() == str(COUNT)
        assert await faults_of(page) == []
        # The drawing marks the step at which the reset was lost.
        await expect(page.locator("figure.lanes .offence-point")).to_be_visible()
