"""A group that is reset from the dashboard: once the reset holds, once it is lost. For pictures and tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from playwright.async_api import Page, expect

from rewindmq import AdminClient, MessageExt
from rewindmq.dashboard.app import make_app
from rewindmq.dashboard.data.cluster_source import ClusterSource
from rewindmq.dashboard.resets.history import open_folder
from rewindmq.dashboard.serving import serving
from rewindmq.dashboard.web.page import DashboardSettings
from rewindmq.testing import Group, Rmq
from rewindmq.testing.clusters.cluster_pool import ClusterPool
from rewindmq.testing.clusters.options import ClusterOptions

# A proof takes 40 s of the cluster's time.
TIME_SCALE: Final = 0.1
COUNT: Final = 6
_LISTENER_SECONDS: Final = 2.0
_SECONDS: Final = 60.0


@dataclass
class Story:
    """A group that has consumed ``COUNT`` messages of one queue, 2 s each, and the address of a dashboard.

    Attributes:
        heard: offsets of the messages in the order of their deliveries.
        gate: the listener waits for it at the first message that comes again.
        again: that message has come.
    """

    rmq: Rmq
    url: str
    group: Group
    heard: list[int]
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    again: asyncio.Event = field(default_factory=asyncio.Event)


@asynccontextmanager
async def served_story(history: Path) -> AsyncIterator[Story]:
    """Run the cluster, the group and the dashboard; its history is in the folder."""
    settings = DashboardSettings("form-token", hosts=frozenset({"127.0.0.1"}))
    with ClusterPool() as pool:
        servers = pool.get(ClusterOptions(brokers=1, time_scale=TIME_SCALE))
        async with (
            Rmq(servers, wire=True) as rmq,
            AdminClient(servers.namesrv_address, time_scale=TIME_SCALE) as admin,
            open_folder(history, admin.runtime.workers) as kept,
            serving(make_app(ClusterSource(admin), settings, kept), "127.0.0.1", 0) as url,
        ):
            topic = await rmq.topic("orders", queues=1)
            await topic.send_many([b"%d" % number for number in range(COUNT)])
            heard: list[int] = []

            async def listen(messages: Sequence[MessageExt]) -> None:
                is_again = bool(heard) and messages[0].queue_offset < heard[-1]
                heard.extend(message.queue_offset for message in messages)
                if is_again:
                    story.again.set()
                    await story.gate.wait()
                await admin.runtime.timers.sleep(_LISTENER_SECONDS)

            group = rmq.push("billing", topic, listen, consume_thread_max=1)
            story = Story(rmq, url, group, heard)
            async with group:
                await group.caught_up()
                try:
                    yield story
                finally:
                    story.gate.set()


async def confirm_reset(page: Page, story: Story, mode: str) -> None:
    """Go from the group's page to its reset to the oldest messages, and confirm it."""
    await page.goto(f"{story.url}/groups/{story.group}")
    await page.get_by_role("link", name="Reset", exact=True).click()
    # The reset has the mode of its preview.
    await page.get_by_label("Mode").select_option(mode)
    await page.get_by_role("button", name="Preview").click()
    await expect(page.locator("dd").first).to_have_text(f"{COUNT} messages")
    await page.get_by_label("Type the group's name").fill(str(story.group))
    await page.get_by_role("button", name="Reset the group and watch it").click()
    await page.wait_for_url("**/resets/*")


async def lose_reset(page: Page, story: Story) -> None:
    """Confirm a classic reset, which a commit of before it overwrites: it was held on the wire until then."""
    story.gate.clear()
    story.again.clear()
    held = await story.rmq.on("UPDATE_CONSUMER_OFFSET", group=story.group).hold()
    await held.met()
    await confirm_reset(page, story, "")
    await asyncio.wait_for(story.again.wait(), _SECONDS)
    # The consumer would repair the loss with its next commit.
    await story.rmq.on("UPDATE_CONSUMER_OFFSET", group=story.group, times=None).drop().optional()
    held.release()
