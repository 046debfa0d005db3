"""Groups: the list, and one group's lag by queue, with its past."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from rewindmq.dashboard.data.consumers import Consumers, consumers_of
from rewindmq.dashboard.web.page import Page, Visit
from rewindmq.dashboard.web.paging import paging
from rewindmq.dashboard.web.plot import line_plot, spark_line
from rewindmq.protocol.names import retry_topic

# Queues in one table; the largest lags stand first, so the rest are those with nothing to see.
_ROWS: Final = 200


async def show_list(visit: Visit) -> Response:
    """Show one page of the names that match."""
    answer = await visit.source.groups()
    found = paging(answer.value or (), visit.query("q"), visit.query("page", "1"))
    return visit.render("names.html", title="Groups", kind="group", answer=answer, found=found)


async def show_lag(visit: Visit) -> Response:
    """Show every queue's lag; a broker that hangs is named with the reason."""
    group = visit.path("group")

    async def values() -> Mapping[str, Any]:
        answer, consumers = await asyncio.gather(
            visit.source.group_queues(group), consumers_of(visit.source, group)
        )
        rows = answer.value.rows if answer.value else {}
        lags = {queue: row.broker_offset - row.consumer_offset for queue, row in rows.items()}
        # Without the part of a broker that did not answer, the sum would look like a lag that went away.
        is_whole = answer.value is not None and not answer.value.problems
        history = visit.source.lag_history
        samples = history.add(group, lags) if lags and is_whole else history.find(group)
        owners = (consumers.value or Consumers()).owners()
        shown = sorted(rows, key=lambda queue: (-lags[queue], queue))[:_ROWS]
        return {
            "title": group,
            "status": answer.status,
            "answer": answer,
            "consumers": consumers,
            "differing": consumers.value.differing() if consumers.value else [],
            "lags": lags,
            "total": sum(lags.values()),
            "largest": max(lags.values(), default=0),
            "behind": sorted({queue.topic for queue, lag in lags.items() if lag > 0} - {retry_topic(group)}),
            "last": max((row.last_timestamp for row in rows.values()), default=0),
            "plot": line_plot(samples.times, samples.totals) if samples else None,
            "rows": [
                (
                    queue,
                    rows[queue],
                    owners.get(queue),
                    spark_line(samples.times, samples.of_queue(queue)) if samples else None,
                )
                for queue in shown
            ],
        }

    return await visit.live("group.html", values)


PAGES = (
    Page("/groups", show_list, "Groups", navigation="Groups", place=3),
    Page("/groups/{group}", show_lag, "Lag"),
)
