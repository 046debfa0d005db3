"""Connections within a time limit."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable

from rewindmq.protocol.remoting.connecting import connect_within
from rewindmq.protocol.remoting.runtime import Cancellable, Timers, system_runtime


class _PassedAtOnce:
    """Limits that are passed in the next round of the loop, as after seconds without processor time."""

    def __init__(self, timers: Timers) -> None:
        self.call_later = timers.call_later
        self.sleep = timers.sleep

    def call_timeout(self, seconds: float, callback: Callable[..., object], *args: object) -> Cancellable:
        return asyncio.get_running_loop().call_soon(callback, *args)


async def test_a_connected_socket_counts_although_the_loop_was_late_to_notice_it() -> None:
    runtime = system_runtime()
    listener = await runtime.network.listen(asyncio.Protocol, "127.0.0.1", 0)
    late = dataclasses.replace(runtime, timers=_PassedAtOnce(runtime.timers))
    transport, _ = await connect_within(late, asyncio.Protocol, "127.0.0.1", listener.port, 3.0)
    assert transport.get_extra_info("peername")[1] == listener.port
    transport.abort()
    listener.close()
