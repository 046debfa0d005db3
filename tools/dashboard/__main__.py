"""Takes the pictures of docs/dashboard.md: ``scripts/draw_dashboard``."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import Final, Literal, NamedTuple

from playwright.async_api import Browser

from tools.dashboard.chromium import NoChromiumError, chromium
from tools.dashboard.shop import served_shop

PICTURES: Final = Path(__file__).parents[2] / "docs" / "images" / "dashboard"


class Picture(NamedTuple):
    """One picture: its file's name, the page's path, how the viewer looks at it, and what appears last."""

    name: str
    path: str
    scheme: Literal["light", "dark"] = "light"
    width: int = 1200
    height: int = 760
    until: str = "main"


_PLOT: Final = "svg.plot"
SHOWN: Final = (
    Picture("clusters", "/", height=420),
    Picture("topic", "/topics/orders", height=640),
    Picture("messages", "/topics/orders/messages", "dark", height=640),
    Picture("message", "/topics/orders/messages/broker-a/2/1"),
    Picture("group", "/groups/reports", until=_PLOT),
    Picture("group-dark", "/groups/reports", "dark", until=_PLOT),
    Picture("consumers", "/groups/shipping/consumers", height=480),
    Picture("narrow", "/groups/reports", width=390, until=_PLOT),
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
    async with chromium() as browser, served_shop() as (_, url):
        for picture in SHOWN:
            await _take_one(browser, url, picture, folder)


async def _take_one(browser: Browser, url: str, picture: Picture, folder: Path) -> None:
    page = await browser.new_page(
        viewport={"width": picture.width, "height": picture.height},
        color_scheme=picture.scheme,
        locale="en-GB",
        timezone_id="UTC",
    )
    await page.goto(url + picture.path)
    await page.locator(picture.until).wait_for()
    await page.screenshot(path=folder / f"{picture.name}.png")
    await page.close()


if __name__ == "__main__":
    sys.exit(main())
