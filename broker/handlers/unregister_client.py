"""UNREGISTER_CLIENT (35): remove a client from a producer or consumer group.

Kept from 4.9.4 ``ClientManageProcessor#unregisterClient``: the connection leaves the group, and the broker
tells the other consumers (NOTIFY_CONSUMER_IDS_CHANGED, 40). Unknown groups are no error.
Changed and refused: nothing.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.client import UnregisterClientRequestHeader
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.UNREGISTER_CLIENT


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    header = request.decode_header(UnregisterClientRequestHeader)
    if header.producer_group is not None:
        context.clients.producers.unregister(header.producer_group, connection)
    group = header.consumer_group
    if group is not None and context.clients.consumers.find(group) is not None:
        config = context.tables.groups.find(group)
        notify = config is None or config.notify_consumer_ids_changed_enable
        context.clients.consumers.unregister(group, connection, notify=notify)
    return RemotingCommand(ResponseCode.SUCCESS)
