"""``/metrics``: the cluster's metrics for Prometheus."""

from __future__ import annotations

from starlette.responses import Response

from rewindmq.dashboard.metrics.scraper import Scraper
from rewindmq.dashboard.web.page import Page, Visit


async def show(visit: Visit) -> Response:
    """Return the exposition in the format that the Accept header asks for."""
    state = visit.request.app.state
    if not hasattr(state, "scraper"):
        state.scraper = Scraper(visit.source)
    scraper: Scraper = state.scraper
    content, content_type = await scraper.exposition(visit.request.headers.get("accept", ""))
    return Response(content, headers={"Content-Type": content_type, "Vary": "Accept"})


PAGES = (Page("/metrics", show, "Metrics"),)
