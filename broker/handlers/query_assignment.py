"""QUERY_ASSIGNMENT (400): return the queues that a consumer shall pull or pop, so that the broker rebalances.

Kept from 5.5.1 ``QueryAssignmentProcessor#queryAssignment``: the mode is what SET_MESSAGE_REQUEST_MODE (401)
stored for the topic and group, else the key ``defaultMessageRequestMode``; PULL for a retry topic. The
strategies are ``AVG`` and ``AVG_BY_CIRCLE``. A broadcasting consumer, and every consumer while
``serverLoadBalancerEnable`` is off, gets all queues. With POP, each consumer pops all queues of each broker
(queue id -1), or those of ``popShareQueueNum`` further consumers, too. The response has no list if the broker
cannot tell: for an unknown topic or strategy, a group without consumers, a blank client id.
Changed: the broker asks a name server for the topic's queues when its answer is older than 30 s, not every
30 s. Queues are in order and each is once in the response; RocketMQ's order is that of a hash set.
Refused with 1: bodies without topic, group or message model; RocketMQ fails with a NullPointerException.
Refused with 3: the request under v42 and v49, as by brokers before 5.0.0.
"""

from __future__ import annotations

from collections.abc import Awaitable, Generator, Sequence
from typing import Final

from rewindmq.broker.assignment.load_balance import STRATEGIES, find_place, pop_share, pull_share
from rewindmq.broker.context import BrokerContext
from rewindmq.broker.limits import QUEUES_PER_SLICE
from rewindmq.protocol.body.assignment import (
    MessageQueueAssignment,
    MessageRequestMode,
    QueryAssignmentRequestBody,
    QueryAssignmentResponseBody,
)
from rewindmq.protocol.body.group import SetMessageRequestModeRequestBody
from rewindmq.protocol.body.heartbeat import MessageModel
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.names import RETRY_GROUP_TOPIC_PREFIX
from rewindmq.protocol.remoting.connection import Connection, Reply

CODE: Final = RequestCode.QUERY_ASSIGNMENT

_UNKNOWN: Final = QueryAssignmentResponseBody()


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> Reply:
    query = decode_body(request, QueryAssignmentRequestBody)
    queues = context.topic_routes.known_queues(query.topic)
    if queues is None:
        return _ask(context, request, query)
    return _answer(context, request, query, queues)


async def _ask(
    context: BrokerContext, request: RemotingCommand, query: QueryAssignmentRequestBody
) -> RemotingCommand | None:
    queues = await context.topic_routes.queues(query.topic)
    if queues is None:
        return RemotingCommand(ResponseCode.SUCCESS, body=_UNKNOWN)
    reply = _answer(context, request, query, queues)
    return await reply if isinstance(reply, Awaitable) else reply


def _answer(
    context: BrokerContext,
    request: RemotingCommand,
    query: QueryAssignmentRequestBody,
    queues: Sequence[MessageQueue],
) -> Reply:
    group = context.clients.consumers.find(query.consumer_group)
    client_ids = group.client_ids() if group is not None else []
    entries = len(queues) + len(client_ids)
    body = _assign(context, query, queues, client_ids)
    return context.large_responses.reply_in_slices(request, entries, body)


def _assign(
    context: BrokerContext,
    query: QueryAssignmentRequestBody,
    queues: Sequence[MessageQueue],
    client_ids: Sequence[str],
) -> Generator[None, None, QueryAssignmentResponseBody]:
    setting = _setting(context, query)
    is_pop = setting.mode == MessageRequestMode.POP
    mode = MessageRequestMode.POP if is_pop else MessageRequestMode.PULL
    mine: Sequence[MessageQueue]
    if query.message_model is MessageModel.BROADCASTING or not context.config.server_load_balancer_enable:
        mine = queues
    else:
        divide = STRATEGIES.get(query.strategy_name or "")
        client_id = query.client_id or ""
        if divide is None or not client_ids:
            return _UNKNOWN
        place = yield from find_place(client_id, client_ids)
        shares_all = setting.pop_share_queue_num <= 0 or setting.pop_share_queue_num >= place.clients - 1
        if not client_id.strip() and not (is_pop and shares_all):
            return _UNKNOWN
        if is_pop:
            mine = pop_share(queues, place, divide, setting.pop_share_queue_num)
        else:
            mine = pull_share(queues, place, divide)
    assignments: list[MessageQueueAssignment] = []
    for first in range(0, len(mine), QUEUES_PER_SLICE):
        part = mine[first : first + QUEUES_PER_SLICE]
        assignments.extend([MessageQueueAssignment(queue, mode) for queue in part])
        yield
    return QueryAssignmentResponseBody(assignments)


def _setting(context: BrokerContext, query: QueryAssignmentRequestBody) -> SetMessageRequestModeRequestBody:
    """Return what was set for the topic and group, else the default; a retry topic is pulled."""
    topic, group = query.topic, query.consumer_group
    known = context.tables.request_modes.get(topic, group)
    if known is not None:
        return known
    if topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
        return SetMessageRequestModeRequestBody(topic, group)
    config = context.config
    return SetMessageRequestModeRequestBody(
        topic, group, config.default_message_request_mode, config.default_pop_share_queue_num
    )
