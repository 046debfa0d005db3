"""rocketmq-client-rust 1.0.0 reads only routes with ``enableActingMaster``, which RocketMQ sends since 5.0.

So it works with 5.x and v53, and neither with RocketMQ 4.9.7 nor with v49. CI does not run this, because the
driver takes long to build; ``tests/namesrv/test_route_json.py`` shows which profile sends the field.
"""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

import pytest

from rewindmq import AdminClient
from tools.interop.clients import CLIENTS
from tools.interop.plan import REFERENCE, V49, V53
from tools.interop.runs import SERVERS
from tools.interop.scenarios.scenario import InteropStage, to_send
from tools.interop.servers import Server

(_RUST,) = (client for client in CLIENTS if client.name == "rust")


@pytest.mark.interop(full_only="tests/namesrv/test_route_json.py shows which profile sends the field")
@pytest.mark.parametrize(
    ("profile", "result"),
    [(V49, "missing field `enableActingMaster`"), (V53, "SEND_OK")],
    ids=(V49, V53),
)
def test_the_rust_client_reads_routes_of_5_only(profile: str, result: str, tmp_path: Path) -> None:
    # The build, which takes minutes, comes before the clusters and the event loop.
    _RUST.command()
    for name in (profile, REFERENCE[profile]):
        with closing(SERVERS[name]()) as server:
            assert result in asyncio.run(_sent(server, tmp_path / f"{name}.log")), name


async def _sent(server: Server, log: Path) -> str:
    """Send one message; return its status, or the library's error."""
    driver = await _RUST.start(log)
    try:
        async with AdminClient(server.namesrv_address) as admin:
            stage = InteropStage(driver, server, admin, "routes")
            topic = await stage.topic()
            producer = await stage.producer()
            messages = to_send(topic, ["body"])
            (sent,) = (await driver.do("send.sync", producer=producer, messages=messages))["results"]
            await stage.close()
            return str(sent["error"]["text"] if "error" in sent else sent["status"])
    finally:
        await driver.stop()
