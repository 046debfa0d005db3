"""Groups: the list, and one group's lag by queue, with its past."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from starlette.responses import Response

from rewindmq.dashboard.data.consumers import GroupConsumers, consumers_of
from rewindmq.dashboard.data.lag_history import LagSamples
from rewindmq.dashboard.data.lag_table import lag_table
from rewindmq.dashboard.web.page import Page, Visit
from rewindmq.dashboard.web.paging import paging
from rewindmq.dashboard.web.plot import Plot, line_plot, spark_line
from rewindmq.protocol.message_queue import MessageQueue

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
        run = visit.source.runtime.workers.run
        is_broadcasting = consumers.value is not None and consumers.value.is_broadcasting
        rows = answer.value.rows if answer.value and not is_broadcasting else {}
        table = await run(lag_table, rows, group, _ROWS)
        # Without the part of a broker that did not answer, the sum would look like a lag that went away.
        is_whole = answer.value is not None and not answer.value.problems
        history = visit.source.lag_history
        samples = history.add(group, table.lags) if table.lags and is_whole else history.find(group)
        if is_broadcasting:
            samples = None
        plots = await run(_plots, samples.copy(), [*table.largest]) if samples else None
        owners = (consumers.value or GroupConsumers()).owners()
        return {
            "title": group,
            "status": answer.status,
            "answer": answer,
            "consumers": consumers,
            "is_broadcasting": is_broadcasting,
            "sharing": consumers.value.sharing() if consumers.value else [],
            "differing": consumers.value.differing() if consumers.value else [],
            "table": table,
            "plot": plots and plots[0],
            "rows": [
                (queue, row, owners.get(queue), plots and plots[1][queue])
                for queue, row in table.largest.items()
            ],
        }

    return await visit.live("group.html", values, is_large=True)


def _plots(
    samples: LagSamples, queues: Sequence[MessageQueue]
) -> tuple[Plot | None, dict[MessageQueue, Plot | None]]:
    """Return the plot of all queues together, and one of each of these queues."""
    times = samples.times
    of_queues = {queue: spark_line(times, samples.of_queue(queue)) for queue in queues}
    return line_plot(times, samples.totals), of_queues


PAGES = (
    Page("/groups", show_list, "Groups", navigation="Groups", place=3),
    Page("/groups/{group}", show_lag, "Lag"),
)
