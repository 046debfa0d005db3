"""A real headless Chromium, and a shop's cluster with a dashboard, for all tests of this folder."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from rewindmq.cluster.async_cluster import AsyncLocalCluster
from tools.dashboard.chromium import NoChromiumError, chromium, chromium_path
from tools.dashboard.shop import served_shop

HERE: Final = Path(__file__).parent
# Only a page that never gets there takes so long.
expect.set_options(timeout=30_000)


@dataclass(frozen=True)
class Shop:
    """A browser, the cluster, and the address of its dashboard."""

    browser: Browser
    cluster: AsyncLocalCluster
    url: str


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that drives a browser as slow."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session", autouse=True)
def needs_chromium() -> None:
    try:
        chromium_path()
    except NoChromiumError as error:
        pytest.skip(str(error))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shop(needs_chromium: None) -> AsyncIterator[Shop]:
    async with chromium() as browser, served_shop() as (cluster, url):
        yield Shop(browser, cluster, url)
