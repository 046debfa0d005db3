"""Reads the brokers' lists of fenced commits: refused commits of deliveries from before a fenced reset."""

from __future__ import annotations

from rewindmq.client.admin.remote import AdminBase, AdminRemote
from rewindmq.client.core.route import MASTER_ID
from rewindmq.protocol.body.fenced_commit import FencedCommitList
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.header.admin import ListFencedCommitsRequestHeader


class FencedAdmin(AdminBase):
    """Reads the commits that brokers refused because they are of deliveries from before a fenced reset."""

    async def fenced_commits(
        self, group: str | None = None, topic: str | None = None, address: str | None = None
    ) -> dict[str, FencedCommitList]:
        """Return the fenced commits of all masters that the name server knows, sorted by broker name.

        Args:
            group: only commits of this consumer group; None for all.
            topic: only commits in this topic; None for all.
            address: ask only the broker at this address; the address is then the key of the result.

        Raises:
            ResponseError: a broker refused; the exception's notes name it. RocketMQ's brokers return
                REQUEST_CODE_NOT_SUPPORTED (3).
            RemotingError: a broker did not answer.
        """
        if address is not None:
            return {address: await fenced_commits_at(self._remote, address, group, topic)}
        info = await self._remote.cluster_info()
        lists = {}
        for name, broker in sorted(info.broker_addr_table.items()):
            master = broker.broker_addrs.get(MASTER_ID)
            if master is not None:
                try:
                    lists[name] = await fenced_commits_at(self._remote, master, group, topic)
                except RewindMQError as error:
                    error.add_note(f"from {name}")
                    raise
        return lists


async def fenced_commits_at(
    remote: AdminRemote, address: str, group: str | None = None, topic: str | None = None
) -> FencedCommitList:
    """Send LIST_FENCED_COMMITS to one broker; None asks for all groups or all topics."""
    header = ListFencedCommitsRequestHeader(group, topic)
    command = remote.command(RequestCode.LIST_FENCED_COMMITS, header)
    return await remote.ask_broker_for(address, command, FencedCommitList)
