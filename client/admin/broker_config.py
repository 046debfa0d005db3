"""A broker's configuration while it runs."""

from __future__ import annotations

from collections.abc import Mapping

from rewindmq.client.admin.remote import AdminRemote
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.config.property_file import format_properties_file, parse_properties_file


async def get_broker_config(remote: AdminRemote, address: str) -> dict[str, str]:
    """Code 26: every key with its value, as it counts now."""
    answer = await remote.ask_broker(address, remote.command(RequestCode.GET_BROKER_CONFIG))
    text = answer.body.decode("utf-8", "replace") if isinstance(answer.body, bytes) else ""
    return {entry.key: entry.value for entry in parse_properties_file(text)}


async def update_broker_config(remote: AdminRemote, address: str, values: Mapping[str, str]) -> None:
    """Code 25."""
    command = remote.command(RequestCode.UPDATE_BROKER_CONFIG)
    command.body = format_properties_file(dict(values)).encode()
    await remote.ask_broker(address, command)
