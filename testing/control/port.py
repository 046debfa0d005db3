"""The control port beside a cluster of ``rewindmq up``."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rewindmq.cluster.errors import ClusterError
from rewindmq.cluster.local_cluster import LocalCluster
from rewindmq.cluster.up.entrances import Entrances
from rewindmq.cluster.up.members import Members
from rewindmq.protocol.remoting.runtime import system_runtime
from rewindmq.testing.control.api import Api
from rewindmq.testing.control.faults import Faults
from rewindmq.testing.control.http_server import HttpServer
from rewindmq.testing.control.token_file import read_or_make_token
from rewindmq.testing.wire.wire import APPLICATION, Wire

_DEFAULT_NAME: Final = "control.token"


@dataclass(frozen=True, slots=True)
class ControlPort:
    """The ports and the token file that the options name.

    Attributes:
        port: of HTTP; 0 takes any free one.
        wire_port: of the wire's name server; 0 takes any free one.
        token_file: None: ``control.token`` in the cluster's directory.
    """

    port: int
    wire_port: int
    token_file: Path | None

    @contextlib.asynccontextmanager
    async def beside(self, cluster: LocalCluster, members: Members) -> AsyncIterator[Entrances]:
        """Serve during an ``async with`` statement.

        Raises:
            ClusterError: a port cannot be opened, or the token file cannot be used.
            OSError: the token file cannot be read or made.
        """
        token_file = self.token_file or cluster.directory / _DEFAULT_NAME
        token = read_or_make_token(token_file)
        runtime = system_runtime(time_scale=cluster.client_options["time_scale"])
        faults = Faults(cluster, runtime)
        try:
            wire_address = await self._open_wire(faults.wire)
            api = Api(cluster, members, faults, wire_address)
            async with HttpServer(token, api.answer).listening(self.port) as url:
                yield Entrances(url, str(token_file), wire_address)
        finally:
            faults.settle()
            await faults.wire.close()

    async def _open_wire(self, wire: Wire) -> str:
        try:
            return await wire.entrance(APPLICATION, self.wire_port)
        except OSError as error:
            raise ClusterError(
                f"the wire's port cannot be opened: {error.strerror}; choose another --wire-port, or 0 for"
                " any free one"
            ) from None
