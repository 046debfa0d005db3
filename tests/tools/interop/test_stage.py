"""The stage of an interop scenario while a server cannot answer."""

from __future__ import annotations

import socket
from typing import Any

from rewindmq import AdminClient
from tools.interop.scenarios.scenario import InteropStage


async def test_an_unreachable_server_counts_as_no_answer() -> None:
    """On a busy machine a connection may take longer than the timeout of the admin client."""
    unused: Any = None
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # the port is taken, and refuses connections
        async with AdminClient(f"127.0.0.1:{closed.getsockname()[1]}") as admin:
            stage = InteropStage(driver=unused, server=unused, admin=admin, prefix="x")
            assert await stage.asked(admin.topics.examine_topic_route_info("T")) is None
