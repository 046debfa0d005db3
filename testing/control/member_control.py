"""MemberControl: the faults of the servers, for the control port."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rewindmq.cluster.async_cluster import AsyncLocalCluster
from rewindmq.cluster.up.members import Members
from rewindmq.cluster.up.messages import Member, MemberAction, MemberState
from rewindmq.testing.clusters.servers import Servers
from rewindmq.testing.control.bodies import DiskBody
from rewindmq.testing.handles.server_control import refuse_wrong_travel
from rewindmq.testing.waiting.waiter import Waiter


class MemberControl:
    """Changes the servers of ``rewindmq up``, one command at a time.

    Args:
        servers: of the cluster whose members ``members`` are.
    """

    def __init__(self, servers: Servers, members: Members, waiter: Waiter) -> None:
        self._servers = servers
        self._members = members
        self._waiter = waiter

    @property
    def cluster(self) -> AsyncLocalCluster:
        """The cluster."""
        return self._servers.require_local("the control port")

    @property
    def simulated_faults(self) -> dict[str, Any]:
        """Which disks act as if they were full, and how far the clocks are ahead, in the cluster's time."""
        scale = self._servers.client_options["time_scale"]
        return {
            "full_disks": sorted(self._servers.full),
            "ahead_seconds": self._servers.ahead_ms / 1_000 / scale,
        }

    def list(self) -> list[Member]:
        """Return all members."""
        return self._members.list()

    async def do(self, action: MemberAction, name: str) -> Member:
        """Change one member; errors as in ``Members.do``. A restart ends when all brokers are registered."""
        member = await self._members.do(action, name)
        if action is MemberAction.RESTART:
            await self._registered()
        return member

    async def fill_disk(self, body: DiskBody) -> None:
        """Let a broker act as if its disk were full, or as its disk is; errors as in ``disk_full``."""
        async with self._members.exclusively():
            await self._servers.set_disk_full(body.broker, body.full)

    async def travel(self, seconds: float) -> None:
        """Move the clocks of all brokers forward; errors as in ``ServerControl.travel``."""
        refuse_wrong_travel(seconds)
        async with self._members.exclusively():
            await self._servers.travel(seconds)

    async def snapshot(self, name: str) -> None:
        """Take a snapshot; errors as in ``Servers.snapshot``."""
        async with self._members.exclusively():
            await self._servers.snapshot(name)

    async def save_snapshot(self, name: str, path: Path) -> None:
        """Write a snapshot to a file."""
        async with self._members.exclusively():
            await self.cluster.save_snapshot(name, path)

    async def load_snapshot(self, name: str, path: Path) -> None:
        """Read a file as a snapshot; errors as in ``Servers.load_snapshot``."""
        async with self._members.exclusively():
            await self._servers.load_snapshot(name, path)

    async def restore_snapshot(self, name: str) -> None:
        """Put the cluster back to a snapshot, and wait until all brokers are registered."""
        async with self._members.replacing():
            await self._servers.restore_snapshot(name)
        await self._registered()

    async def settle(self) -> dict[str, Any]:
        """Undo what a test did to the servers, as the kit does at a test's end; return what was undone."""
        undone = {"restored": [each.name for each in self.list() if each.state is not MemberState.RUNNING]}
        undone |= self.simulated_faults
        async with self._members.replacing():
            was_started = await self._servers.restore()
        if was_started or undone["restored"]:
            await self._registered()
        return undone

    async def return_from_travel(self) -> None:
        """Put the cluster back to the moment before its first travel, if it has travelled."""
        if self._servers.has_travelled:
            await self.settle()

    async def _registered(self) -> None:
        """Wait until the name server knows each broker that runs."""
        cluster = self.cluster
        wanted = {name for name, broker in cluster.brokers.items() if broker.is_running}
        if not wanted or not cluster.namesrv.is_running or cluster.namesrv.is_paused:
            return
        async with cluster.admin() as admin:

            async def condition() -> str | None:
                missing = (
                    wanted - (await admin.brokers.examine_broker_cluster_info()).broker_addr_table.keys()
                )
                return f"not registered: {', '.join(sorted(missing))}" if missing else None

            await self._waiter.until(condition, "the brokers are registered")
