"""Clusters and brokers: version, rates and disk of every broker process."""

from __future__ import annotations

from starlette.responses import Response

from rewindmq.dashboard.data.cluster_source import BrokerState
from rewindmq.dashboard.web.page import Page, Visit


async def show(visit: Visit) -> Response:
    """Show every broker; one that hangs is shown with the reason after 2 s."""
    brokers = await visit.source.brokers()
    rows = [(broker, _rate(broker, "putTps"), _rate(broker, "getTransferedTps")) for broker in brokers.value or ()]
    return visit.render("clusters.html", title="Clusters", answer=brokers, rows=rows)


def _rate(broker: BrokerState, key: str) -> str:
    """Return messages per second of the last 10 s; brokers send the rates of 10, 60 and 600 s."""
    rates = (broker.stats.value or {}).get(key, "").split()
    try:
        return f"{float(rates[0]):.1f}"
    except (IndexError, ValueError):
        return "–"


PAGES = (Page("/", show, "Clusters", navigation="Clusters"),)
