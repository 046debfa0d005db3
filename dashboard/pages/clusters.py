"""Clusters and brokers: version, rates and disk of every broker process; every figure of one."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from rewindmq.dashboard.data.answer import Answer
from rewindmq.dashboard.data.cluster_source import BrokerState
from rewindmq.dashboard.web.page import Page, Visit

_STALL: Final = "eventLoopWorstStallMs"
# Keys of a configuration whose values are secrets, such as innerClientAuthenticationCredentials of 5.x.
_SECRET: Final = re.compile(
    "secret|password|passwd|credential|token|accesskey|authenticationuser", re.IGNORECASE
)
_HIDDEN: Final = "(hidden)"


async def show(visit: Visit) -> Response:
    """Show every broker; one that hangs is shown with the reason after 2 s."""

    async def values() -> Mapping[str, Any]:
        brokers = await visit.source.brokers()
        rows = [broker_row(broker) for broker in brokers.value or ()]
        masters = [row for row in rows if row["broker"].broker_id == 0]
        totals = {
            "brokers": sum(row["broker"].stats.value is not None for row in rows),
            "put": sum(row["put"] or 0.0 for row in masters),
            "got": sum(row["got"] or 0.0 for row in masters),
            "today": sum(row["today"] or 0 for row in masters),
        }
        return {"title": "Clusters", "answer": brokers, "rows": rows, "totals": totals}

    return await visit.live("clusters.html", values)


async def show_broker(visit: Visit) -> Response:
    """Show what one broker says about itself: runtime figures, limits, configuration."""
    name, broker_id = visit.path("name"), visit.path("id")
    brokers = await visit.source.brokers()
    found = [each for each in brokers.value or () if each.name == name and str(each.broker_id) == broker_id]
    if not found:
        problem = (
            brokers.sentence
            if brokers.problem
            else f"The name server knows no broker {name} with id {broker_id}."
        )
        status = 404 if brokers.value is not None else 200
        return visit.render("broker.html", status, title=name, problem=problem, broker=None)
    broker = found[0]
    # A broker that did not answer once is not asked again.
    config: Answer[dict[str, str]] = (
        await visit.source.ask(visit.source.admin.brokers.get_broker_config(broker.address))
        if broker.stats.value is not None
        else broker.stats.failed()
    )
    stats = broker.stats.value or {}
    usage = {key: _share(value) for key, value in sorted(stats.items()) if key.startswith("usage")}
    return visit.render(
        "broker.html",
        title=f"{name} · {broker_id}",
        problem=None,
        broker=broker,
        usage={key: share for key, share in usage.items() if share},
        stats={key: value for key, value in sorted(stats.items()) if not usage.get(key)},
        config=config,
        settings_shown=without_secrets(config.value or {}),
    )


def without_secrets(config: Mapping[str, str]) -> dict[str, str]:
    """Return a broker's configuration, sorted, with the values of secrets replaced."""
    return {key: _HIDDEN if value and _SECRET.search(key) else value for key, value in sorted(config.items())}


def broker_row(broker: BrokerState) -> dict[str, Any]:
    """Return the cells of a broker process; None where its statistics have no number."""
    stats = broker.stats.value or {}
    disk = _number(stats.get("commitLogDiskRatio", ""))
    return {
        "broker": broker,
        "version": stats.get("brokerVersionDesc", "–"),
        "put": _number(stats.get("putTps", "")),
        "got": _number(stats.get("getTransferedTps", "") or stats.get("getTransferredTps", "")),
        "today": _today(stats),
        "disk": round(disk * 100) if disk is not None and disk >= 0 else None,
        "stall": _number(stats.get(_STALL, "")),
    }


def _number(text: str) -> float | None:
    """Return the first number; of rates this is the one of the last 10 s, before those of 60 and 600 s."""
    try:
        number = float(text.split()[0])
    except (IndexError, ValueError):
        return None
    # A broker may send any text; int and round raise errors for these.
    return number if math.isfinite(number) else None


def _today(stats: Mapping[str, str]) -> int | None:
    now, morning = (
        _number(stats.get("msgPutTotalTodayNow", "")),
        _number(stats.get("msgPutTotalTodayMorning", "")),
    )
    return None if now is None or morning is None else int(now - morning)


def _share(text: str) -> tuple[int, int] | None:
    """Return both numbers of ``used/limit``."""
    used, slash, limit = text.partition("/")
    if slash and used.isdecimal() and limit.isdecimal() and int(limit):
        return int(used), int(limit)
    return None


PAGES = (
    Page("/", show, "Clusters", navigation="Clusters", place=1),
    Page("/brokers/{name}/{id}", show_broker, "Broker"),
)
