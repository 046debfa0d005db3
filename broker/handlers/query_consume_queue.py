"""QUERY_CONSUME_QUEUE (321): return the stored entries of a ConsumeQueue.

Kept from 4.9.7 ``AdminBrokerProcessor#queryConsumeQueue``: a queue that never had a message fails with 1. A
success has RocketMQ's remark, and the subscription of the named group with its filter.
Changed: an index outside the queue fails with 1; RocketMQ succeeds without a body, which breaks its own tool.
A response has at most ``MAX_CONSUME_QUEUE_ENTRIES`` entries.
Refused: nothing; there are no extended entries to evaluate.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.limits import MAX_CONSUME_QUEUE_ENTRIES, QUEUES_PER_SLICE
from rewindmq.protocol.body.heartbeat import EXPRESSION_TAG, SubscriptionData
from rewindmq.protocol.body.stats import ConsumeQueueData, QueryConsumeQueueResponseBody
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec import fastjson
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.admin import QueryConsumeQueueRequestHeader
from rewindmq.protocol.remoting.connection import Connection, Reply

CODE: Final = RequestCode.QUERY_CONSUME_QUEUE

_REMARK = "not set any response code"


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> Reply:
    header = request.decode_header(QueryConsumeQueueRequestHeader)
    topic, queue_id, index = header.topic or "", header.queue_id, header.index
    store = context.store
    first, end = store.min_offset(topic, queue_id), store.max_offset(topic, queue_id)
    if not end:
        raise RequestError(ResponseCode.SYSTEM_ERROR, f"{queue_id}@{topic} is not exist!")
    if not first <= index < end:
        text = f"Index {index} of {queue_id}@{topic} is not exist!"
        raise RequestError(ResponseCode.SYSTEM_ERROR, text)
    count = min(max(header.count, 0), MAX_CONSUME_QUEUE_ENTRIES)
    wanted = range(index, min(end, index + count))
    body = QueryConsumeQueueResponseBody([], first, end)
    if header.consumer_group is not None:
        _add_subscription(context, header.consumer_group, topic, body)
    entries = _with_entries(context, topic, queue_id, wanted, body)
    return context.large_responses.reply_in_slices(request, len(wanted), entries, remark=_REMARK)


def _with_entries(
    context: BrokerContext, topic: str, queue_id: int, wanted: range, body: QueryConsumeQueueResponseBody
) -> Generator[None, None, QueryConsumeQueueResponseBody]:
    for number, offset in enumerate(wanted, 1):
        entry = context.store.entry(topic, queue_id, offset)
        if entry is not None:
            body.queue_data.append(ConsumeQueueData(*entry))
        if number % QUEUES_PER_SLICE == 0:
            yield
    return body


def _add_subscription(
    context: BrokerContext, group: str, topic: str, body: QueryConsumeQueueResponseBody
) -> None:
    online = context.clients.consumers.find(group)
    subscription = None if online is None else online.subscriptions.get(topic)
    body.subscription_data = subscription
    if subscription is None:
        body.filter_data = f"{group}@{topic} is not online!"
    else:
        body.filter_data = fastjson.dumps(_filter_of(group, subscription))


def _filter_of(group: str, subscription: SubscriptionData) -> dict[str, object] | None:
    # RocketMQ has no filter data for subscriptions by tag.
    if subscription.expression_type in (None, EXPRESSION_TAG):
        return None
    return {
        "clientVersion": subscription.sub_version,
        "consumerGroup": group,
        "expression": subscription.sub_string,
        "expressionType": subscription.expression_type,
        "topic": subscription.topic,
    }
