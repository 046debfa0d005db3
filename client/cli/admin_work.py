"""Runs a command that reads a cluster with an admin client until it is done or interrupted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

from rewindmq.protocol.remoting.process.options import ProcessOptions

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient
    from rewindmq.protocol.remoting.runtime import Runtime

_EXIT_INTERRUPTED: Final = 130


def run_with_admin(
    namesrv: str | None, work: Callable[[AdminClient, Runtime], Coroutine[Any, Any, None]]
) -> int:
    """Run ``work(admin, runtime)``. Return the exit code: 130 if SIGINT or SIGTERM ended it, else 0.

    Args:
        namesrv: ``host:port`` of the name servers; None takes the environment's ``NAMESRV_ADDR``.

    Raises:
        RewindMQError: raised by ``work``; or no name server is known.
    """
    from rewindmq.protocol.remoting.process.runner import finishes_before, run_work

    async def run(runtime: Runtime, stopping: asyncio.Event) -> int:
        from rewindmq.client.admin.admin_client import AdminClient

        async with AdminClient(namesrv, runtime=runtime) as admin:
            is_finished = await finishes_before(stopping, work(admin, runtime))
        return 0 if is_finished else _EXIT_INTERRUPTED

    return run_work(run, ProcessOptions(log_level="warning"))
