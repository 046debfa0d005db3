"""Server-sent events: a page's live part, rendered again and sent when it changed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable

from starlette.responses import StreamingResponse

from rewindmq.protocol.remoting.runtime import Timers


def event_stream(render: Callable[[], Awaitable[str]], timers: Timers, seconds: float) -> StreamingResponse:
    """Return a response that sends ``render()`` as an event ``part`` now and every ``seconds`` if it changed.

    An unchanged part sends a comment, which finds out whether the browser is gone.
    """

    async def events() -> AsyncIterator[str]:
        last = None
        while True:
            part = await render()
            # JSON, because an event's data has no line breaks of its own.
            yield f"event: part\ndata: {json.dumps(part)}\n\n" if part != last else ": same\n\n"
            last = part
            await _wait(timers, seconds)

    return StreamingResponse(events(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


async def _wait(timers: Timers, seconds: float) -> None:
    """Wait for seconds of the viewer, which no time scale of the cluster shortens."""
    over = asyncio.Event()
    timer = timers.call_timeout(seconds, over.set)
    try:
        await over.wait()
    finally:
        timer.cancel()
