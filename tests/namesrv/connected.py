"""A name server with a broker's connection to it and a client's."""

from __future__ import annotations

from typing import Any

from rewindmq.namesrv.server import NameServer
from tests.support.peer import Peer
from tests.support.stage import ServerStage


async def connected(stage: ServerStage, **switches: Any) -> tuple[NameServer, Peer, Peer]:
    """Start a name server with these keys; returns it, a broker's peer and a client's."""
    namesrv = await stage.start_namesrv(**switches)
    return namesrv, stage.peer(), stage.peer()
