"""Opens a connection within a time limit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from rewindmq.protocol.remoting.runtime import Runtime

# asyncio needs four rounds of its loop from the connected socket to the return of ``Network.connect``.
_ROUNDS: Final = 8


async def connect_within(
    runtime: Runtime, factory: Callable[[], asyncio.Protocol], host: str, port: int, seconds: float
) -> tuple[asyncio.Transport, asyncio.Protocol]:
    """Open a connection in at most ``seconds``, not scaled.

    A loop that had no processor time may find the limit passed and the socket connected in the same round;
    the connection counts then, as in Netty, whose loop handles its sockets before its timers.

    Raises:
        TimeoutError: no connection in that time.
        OSError: refused or unreachable.
    """
    loop = asyncio.get_running_loop()
    attempt = asyncio.ensure_future(runtime.network.connect(factory, host, port))

    def give_up(rounds: int) -> None:
        if rounds == 0:
            attempt.cancel()
        else:
            loop.call_soon(give_up, rounds - 1)

    timer = runtime.timers.call_timeout(seconds, give_up, _ROUNDS)
    try:
        return await attempt
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise TimeoutError(f"no connection within {seconds * 1000:.0f} ms") from None
    finally:
        timer.cancel()
