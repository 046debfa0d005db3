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
from rewindmq.testing.clusters.servers import Servers
from rewindmq.testing.control.api import Api
from rewindmq.testing.control.fault_paths import FaultPaths, is_wait
from rewindmq.testing.control.faults import Faults
from rewindmq.testing.control.http_server import HttpServer
from rewindmq.testing.control.member_control import MemberControl
from rewindmq.testing.control.server_paths import ServerPaths
from rewindmq.testing.control.snapshot_folder import SnapshotFolder
from rewindmq.testing.control.snapshot_paths import SnapshotPaths
from rewindmq.testing.control.token_file import check_token_file, read_or_make_token
from rewindmq.testing.wire.wire import APPLICATION, Wire

_DEFAULT_NAME: Final = "control.token"
_DEFAULT_SNAPSHOT_DIR: Final = "saved"


@dataclass(frozen=True, slots=True)
class ControlPort:
    """The ports and the token file that the options name.

    Attributes:
        port: of HTTP; 0 takes any free one.
        wire_port: of the wire's name server; 0 takes any free one.
        token_file: None: ``control.token`` in the cluster's directory.
        snapshot_dir: folder of the files that snapshots are saved to; None: ``saved`` in the cluster's
            directory.
    """

    port: int
    wire_port: int
    token_file: Path | None = None
    snapshot_dir: Path | None = None

    def check(self) -> None:
        """Check the named token file, before any server starts.

        Raises:
            ClusterError: it exists, and cannot be used.
            OSError: it exists, and cannot be read.
        """
        if self.token_file is not None:
            check_token_file(self.token_file)

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
        snapshot_dir = self.snapshot_dir or cluster.directory / _DEFAULT_SNAPSHOT_DIR
        servers = Servers(cluster.namesrv_address, cluster.client_options, cluster)
        faults = Faults(servers, runtime)
        control = MemberControl(servers, members, faults.waiter)
        snapshots = SnapshotPaths(control, SnapshotFolder(snapshot_dir))
        async with contextlib.AsyncExitStack() as ending:
            ending.push_async_callback(faults.wire.close)
            ending.callback(faults.settle)
            wire_address = await self._open_wire(faults.wire)
            # A cluster that was killed while its clocks were ahead has left its stores in the future.
            await control.return_from_travel()
            ending.push_async_callback(control.return_from_travel)
            entrances = {"wire": wire_address, "snapshot_dir": str(snapshot_dir)}
            paths = ServerPaths(cluster, control, entrances, faults.waiter.default_timeout)
            api = Api(faults, control, paths.handlers, FaultPaths(faults).handlers, snapshots.handlers)
            server = HttpServer(token, api.answer, only_waits=is_wait)
            url = await ending.enter_async_context(server.listening(self.port))
            yield Entrances(url, str(token_file), wire_address)

    async def _open_wire(self, wire: Wire) -> str:
        try:
            return await wire.entrance(APPLICATION, self.wire_port)
        except OSError as error:
            raise ClusterError(
                f"the wire's port cannot be opened: {error.strerror}; choose another --wire-port, or 0 for"
                " any free one"
            ) from None
