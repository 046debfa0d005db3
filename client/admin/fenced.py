"""The commits that fenced resets have overtaken, as the brokers list them."""

from __future__ import annotations

from rewindmq.client.admin.remote import AdminBase, AdminRemote
from rewindmq.client.core.route import MASTER_ID
from rewindmq.protocol.body.fenced_commit import FencedCommitList
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.header.admin import ListFencedCommitsRequestHeader


class FencedAdmin(AdminBase):
    """The commits that fenced resets have overtaken."""

    async def fenced_commits(
        self, group: str | None = None, topic: str | None = None, address: str | None = None
    ) -> dict[str, FencedCommitList]:
        """Return the lists of all masters that the name server knows, by broker name, sorted.

        Args:
            address: ask this broker only; its list stands under the address.

        Raises:
            ResponseError: a broker refused; RocketMQ's own do, with 3. Its name is in the exception's notes.
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
    """LIST_FENCED_COMMITS at one broker; of any group and topic unless named."""
    header = ListFencedCommitsRequestHeader(group, topic)
    command = remote.command(RequestCode.LIST_FENCED_COMMITS, header)
    return decode_body(await remote.ask_broker(address, command), FencedCommitList)
