"""DELETE_SUBSCRIPTIONGROUP (207): remove a consumer group's settings and, on request, its offsets.

Kept from 4.9.4 ``AdminBrokerProcessor#deleteSubscriptionGroup``: the request succeeds for an unknown group.
Topics and connected consumers stay. Where groups are created automatically, the next heartbeat creates the
group again. Kept from 5.3.3: the marks of server-side resets go with the offsets.
Changed: the epochs of fenced resets go with the offsets.
Refused with 1: a request to a slave, or one during which the disk fails.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.handlers.shared.master_only import check_master
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.admin import DeleteSubscriptionGroupRequestHeader
from rewindmq.protocol.remoting.connection import Connection, Reply

CODE: Final = RequestCode.DELETE_SUBSCRIPTIONGROUP


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> Reply:
    check_master(context.config)
    before = context.table_flush.versions
    header = request.decode_header(DeleteSubscriptionGroupRequestHeader)
    context.groups.delete(header.group_name)
    context.stats.items.on_group_deleted(header.group_name)
    if header.removes_offset:
        context.offsets.remove_group(header.group_name)
        context.reset_offsets.remove_group(header.group_name)
        context.rewinds.remove(group=header.group_name)
    return context.table_flush.answer(RemotingCommand(ResponseCode.SUCCESS), before)
