"""A headless Chromium of the operating system, driven by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Browser, async_playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")


class NoChromiumError(Exception):
    """The machine has no Chromium; the text says how to install it."""


def chromium_path() -> str:
    """Return the path of the machine's Chromium.

    Raises:
        NoChromiumError: there is none.
    """
    found = next((path for name in _NAMES if (path := shutil.which(name))), None)
    if found is None:
        raise NoChromiumError("needs Chromium: sudo apt-get install chromium")
    return found


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """Run Chromium until the block ends.

    Raises:
        NoChromiumError: the machine has none.
    """
    path = chromium_path()
    async with async_playwright() as playwright:
        # Chromium cannot make its sandbox as root, and in most containers. It sees no other site.
        browser = await playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            await browser.close()
