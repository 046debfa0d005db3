"""Settings of consumer groups at brokers."""

from __future__ import annotations

from rewindmq.client.admin.remote import AdminRemote
from rewindmq.protocol.body.group import SubscriptionGroupConfig, SubscriptionGroupWrapper
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.header.admin import DeleteSubscriptionGroupRequestHeader


async def create_and_update_subscription_group(
    remote: AdminRemote, address: str, group: SubscriptionGroupConfig
) -> None:
    """Code 200 at one broker."""
    command = remote.api.command(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, None, group)
    await remote.ask_broker(address, command)


async def delete_subscription_group(
    remote: AdminRemote, address: str, group: str, *, remove_offset: bool
) -> None:
    """Code 207 at one broker."""
    # 5.x reads the second name.
    header = DeleteSubscriptionGroupRequestHeader(group, remove_offset, remove_offset)
    await remote.ask_broker(address, remote.command(RequestCode.DELETE_SUBSCRIPTIONGROUP, header))


async def subscription_groups(remote: AdminRemote, address: str) -> dict[str, SubscriptionGroupConfig]:
    """Code 201 at one broker: every group's settings."""
    command = remote.command(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)
    answer = decode_body(await remote.ask_broker(address, command), SubscriptionGroupWrapper)
    return answer.subscription_group_table
