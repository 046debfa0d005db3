"""DELETE_SUBSCRIPTIONGROUP (207): remove a consumer group's settings and, on request, its offsets.

Kept from 4.9.4 ``AdminBrokerProcessor#deleteSubscriptionGroup``: the request succeeds for an unknown group.
Topics and connected consumers stay. Where groups are created automatically, the next heartbeat creates the
group again. Kept from 5.3.3: the marks of server-side resets go with the offsets.
Changed: the epochs of fenced resets go with the offsets. The response waits until the offsets are removed on
disk.
Refused with 1: a request to a slave, or one during which the disk fails.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.handlers.shared.master_only import check_master
from rewindmq.broker.store.errors import StoreError
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.admin import DeleteSubscriptionGroupRequestHeader
from rewindmq.protocol.remoting.connection import Connection, Reply

CODE: Final = RequestCode.DELETE_SUBSCRIPTIONGROUP


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> Reply:
    check_master(context.config)
    before = context.tables.flush.versions
    header = request.decode_header(DeleteSubscriptionGroupRequestHeader)
    context.tables.groups.delete(header.group_name)
    context.stats.items.on_group_deleted(header.group_name)
    if context.pop is not None:
        context.pop.on_deleted(group=header.group_name)
    removed: list[str] = []
    if header.removes_offset:
        removed = context.offsets.table.remove_group(header.group_name)
        context.offsets.marks.remove_group(header.group_name)
        context.offsets.rewinds.remove(group=header.group_name)
    answer = context.tables.flush.answer(RemotingCommand(ResponseCode.SUCCESS), before)
    return _answer_saved(context, removed, answer) if removed else answer


async def _answer_saved(
    context: BrokerContext,
    removed: list[str],
    answer: RemotingCommand | Coroutine[Any, Any, RemotingCommand],
) -> RemotingCommand:
    response = answer if isinstance(answer, RemotingCommand) else await answer
    try:
        await context.offsets.flush.saved(removed)
    except StoreError as error:
        raise RequestError(ResponseCode.SYSTEM_ERROR, str(error)) from None
    return response
