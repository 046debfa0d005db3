"""Takes the pictures of docs/dashboard.md: ``scripts/draw_dashboard``."""

from __future__ import annotations

import argparse
import asyncio
import itertools
import sys
import tempfile
from pathlib import Path
from typing import Final, Literal, NamedTuple

from playwright.async_api import Browser, Page, expect

from rewindmq import Message
from rewindmq.cluster.async_cluster import AsyncLocalCluster
from rewindmq.protocol.remoting.runtime import system_runtime
from tools.dashboard.chromium import NoChromiumError, chromium
from tools.dashboard.reset_story import confirm_reset, lose_reset, served_story
from tools.dashboard.shop import served_shop

PICTURES: Final = Path(__file__).parents[2] / "docs" / "images" / "dashboard"


class Picture(NamedTuple):
    """One picture: its file's name, the page's path, how the viewer looks at it, and if it has a plot."""

    name: str
    path: str
    scheme: Literal["light", "dark"] = "light"
    width: int = 1200
    height: int = 760
    has_plot: bool = False


_SIX_LOOKS: Final = "document.querySelector('svg.plot polyline')?.points.length >= 6"
_PROOF_MS: Final = 60_000
# Seconds between two orders.
_PAUSES: Final = (0.1, 0.1, 0.1, 1.5, 0.4, 0.1, 2.0, 0.8)
SHOWN: Final = (
    Picture("clusters", "/", height=420),
    Picture("topic", "/topics/orders", height=640),
    Picture("messages", "/topics/orders/messages", "dark", height=640),
    Picture("message", "/topics/orders/messages/broker-a/2/1"),
    Picture("group", "/groups/reports", has_plot=True),
    Picture("consumers", "/groups/shipping/consumers", height=520),
    Picture("dead-letters", "/groups/mailer/dead-letters", height=480),
    Picture("compare", "/groups/billing/compare?with=reports", height=700),
    Picture("race", "/races/R1?case=v49/classic&seed=7", "dark", height=1180),
    Picture("narrow", "/groups/reports", width=390, has_plot=True),
)


def main() -> int:
    """Run the command and return the exit code."""
    parser = argparse.ArgumentParser(prog="draw_dashboard", description=__doc__)
    parser.add_argument("--to", type=Path, default=PICTURES, metavar="DIR", help="folder of the pictures")
    arguments = parser.parse_args()
    arguments.to.mkdir(parents=True, exist_ok=True)
    try:
        asyncio.run(_take(arguments.to))
    except NoChromiumError as error:
        print(f"draw_dashboard: {error}", file=sys.stderr)
        return 1
    return 0


async def _take(folder: Path) -> None:
    async with chromium() as browser, served_shop() as (cluster, url):
        trading = asyncio.create_task(_trade(cluster))
        for picture in SHOWN:
            await _take_one(browser, url, picture, folder)
        trading.cancel()
        await asyncio.wait((trading,))
        if not trading.cancelled():
            trading.result()
        await _take_proofs(browser, folder)


async def _take_proofs(browser: Browser, folder: Path) -> None:
    """Take a reset that holds, one that is lost, and the history of both."""
    with tempfile.TemporaryDirectory(prefix="rewindmq-history-") as history:
        async with served_story(Path(history)) as story:
            page = await _new_page(browser, Picture("proof", "", height=1250))
            story.gate.set()
            await confirm_reset(page, story, "fenced")
            await _take_proof(page, "proven", folder / "proof.png")
        async with served_story(Path(history)) as story:
            page = await _new_page(browser, Picture("proof-lost", "", "dark", height=1300))
            await lose_reset(page, story)
            await _take_proof(page, "lost", folder / "proof-lost.png")
            page = await _new_page(browser, Picture("resets", "", height=420))
            await page.goto(f"{story.url}/resets")
            await page.screenshot(path=folder / "resets.png")
            await page.close()


async def _take_proof(page: Page, verdict: str, path: Path) -> None:
    await expect(page.locator("#verdict")).to_have_text(verdict, timeout=_PROOF_MS)
    # The drawing is wider than its box; its end shows the verdict.
    await page.locator("figure.lanes .scroll").evaluate("box => { box.scrollLeft = box.scrollWidth; }")
    await page.screenshot(path=path)
    await page.close()


async def _trade(cluster: AsyncLocalCluster) -> None:
    """Send orders without end, so that the lag of the group without consumers changes."""
    timers = system_runtime().timers
    async with cluster.producer("shop") as producer:
        for number in itertools.count():
            order = Message("orders", b'{"order": %d}' % (1000 + number), "paid", f"order-{1000 + number}")
            await producer.send(order)
            await timers.sleep(_PAUSES[number % len(_PAUSES)])


async def _new_page(browser: Browser, picture: Picture) -> Page:
    return await browser.new_page(
        viewport={"width": picture.width, "height": picture.height},
        color_scheme=picture.scheme,
        locale="en-GB",
        timezone_id="UTC",
        # The page's policy refuses the function that waits for the plot.
        bypass_csp=True,
    )


async def _take_one(browser: Browser, url: str, picture: Picture, folder: Path) -> None:
    page = await _new_page(browser, picture)
    await page.goto(url + picture.path)
    if picture.has_plot:
        await page.wait_for_function(_SIX_LOOKS)
    await page.screenshot(path=folder / f"{picture.name}.png")
    await page.close()


if __name__ == "__main__":
    sys.exit(main())
