"""What the stage of an interop scenario does while a server cannot answer."""

from __future__ import annotations

import socket
from typing import Any

from rewindmq import AdminClient
from tools.interop.scenarios.scenario import Stage


async def test_a_server_that_cannot_be_reached_now_is_asked_again() -> None:
    """On a busy machine a connection may take longer than an administrator waits."""
    nobody: Any = None
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # the port is taken, and refuses connections
        async with AdminClient(f"127.0.0.1:{closed.getsockname()[1]}") as admin:
            stage = Stage(driver=nobody, server=nobody, admin=admin, prefix="x")
            assert await stage.asked(admin.examine_topic_route_info("T")) is None
