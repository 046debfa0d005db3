"""The commits that fenced resets have overtaken, as the brokers list them."""

from __future__ import annotations

from rewindmq.client.admin.remote import AdminRemote
from rewindmq.client.admin.topics import examine_broker_cluster_info
from rewindmq.client.core.route import MASTER_ID
from rewindmq.protocol.body.fenced_commit import FencedCommitList
from rewindmq.protocol.body_codec import decode_body
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.header.admin import ListFencedCommitsRequestHeader


async def fenced_commits(
    remote: AdminRemote, group: str | None = None, topic: str | None = None
) -> dict[str, FencedCommitList]:
    """The lists of all masters that the name server knows, by broker name, sorted.

    Raises:
        ResponseError: a broker refused; RocketMQ's own do, with 3. Its name is in the exception's notes.
        RemotingError: a broker did not answer.
    """
    info = await examine_broker_cluster_info(remote)
    lists = {}
    for name, broker in sorted(info.broker_addr_table.items()):
        address = broker.broker_addrs.get(MASTER_ID)
        if address is not None:
            try:
                lists[name] = await fenced_commits_at(remote, address, group, topic)
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
