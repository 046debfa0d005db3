"""Opens a connection within a time limit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from rewindmq.protocol.remoting.runtime import Runtime


async def connect_within(
    runtime: Runtime, factory: Callable[[], asyncio.Protocol], host: str, port: int, seconds: float
) -> tuple[asyncio.Transport, asyncio.Protocol]:
    """Open a connection in at most ``seconds``, not scaled.

    Raises:
        TimeoutError: no connection in that time.
        OSError: refused or unreachable.
    """
    attempt = asyncio.ensure_future(runtime.network.connect(factory, host, port))
    timer = runtime.timers.call_timeout(seconds, attempt.cancel)
    try:
        return await attempt
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise TimeoutError(f"no connection within {seconds * 1000:.0f} ms") from None
    finally:
        timer.cancel()
