"""Whether name servers let producers send to a broker."""

from __future__ import annotations

from rewindmq.client.admin.remote import AdminRemote
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.header.namesrv import (
    AddWritePermOfBrokerRequestHeader,
    AddWritePermOfBrokerResponseHeader,
    WipeWritePermOfBrokerRequestHeader,
    WipeWritePermOfBrokerResponseHeader,
)


async def wipe_write_perm_of_broker(remote: AdminRemote, namesrv_address: str, broker_name: str) -> int:
    """Code 205 at one name server; gives the number of the broker's topics, 0 for an unknown broker."""
    header = WipeWritePermOfBrokerRequestHeader(broker_name=broker_name)
    command = remote.command(RequestCode.WIPE_WRITE_PERM_OF_BROKER, header)
    answer = await remote.ask_namesrv_at(namesrv_address, command)
    return answer.decode_header(WipeWritePermOfBrokerResponseHeader).wipe_topic_count


async def add_write_perm_of_broker(remote: AdminRemote, namesrv_address: str, broker_name: str) -> int:
    """Code 327 at one name server; gives the number of the broker's topics, 0 for an unknown broker."""
    header = AddWritePermOfBrokerRequestHeader(broker_name=broker_name)
    command = remote.command(RequestCode.ADD_WRITE_PERM_OF_BROKER, header)
    answer = await remote.ask_namesrv_at(namesrv_address, command)
    return answer.decode_header(AddWritePermOfBrokerResponseHeader).add_topic_count
