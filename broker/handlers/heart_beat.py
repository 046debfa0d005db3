"""HEART_BEAT (34): register the groups for which a client produces and consumes.

Kept from 4.9.4 ``ClientManageProcessor#heartBeat``: the broker creates the group and its %RETRY% topic, and
registers both under the connection. It sends a change to every consumer of the group, the new one included
(NOTIFY_CONSUMER_IDS_CHANGED, 40).
Changed: the broker serves a large heartbeat in slices, one such heartbeat at a time. Later requests to this
client use the serialization type of the heartbeat. ``withoutSub`` (5.x) keeps the subscriptions. If the
client sends its time scale, the response has the broker's.
Refused with 1, before anything is registered: a group name outside RocketMQ's character table, and more
groups, larger subscriptions or a longer client id than docs/limits.md allows. Refused with 1, too: a new
group if the table of groups or topics is full.
"""

from __future__ import annotations

from collections.abc import Awaitable, Generator
from typing import Final

from rewindmq.broker.clients.channel import ClientChannel
from rewindmq.broker.context import BrokerContext
from rewindmq.broker.limits import check_client_id
from rewindmq.protocol.body.heartbeat import ConsumerData, HeartbeatData
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.body import plain_body, typed_body
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.client import TIME_SCALE
from rewindmq.protocol.message.sysflag import TopicSysFlag
from rewindmq.protocol.names import check_group, retry_topic
from rewindmq.protocol.remoting.connection import Connection, Reply
from rewindmq.protocol.remoting.slices.run import run_at_once

CODE: Final = RequestCode.HEART_BEAT
# Such a request takes less than 1 ms, except if it makes groups.
_SMALL_BYTES: Final = 16_384


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> Reply:
    work = _register(context, connection, request)
    if request.received_bytes <= _SMALL_BYTES:
        return run_at_once(work)
    return _register_in_slices(context, work)


async def _register_in_slices(
    context: BrokerContext, work: Generator[None, None, Reply]
) -> RemotingCommand | None:
    # The connection cancels this if it is closed meanwhile, so no closed connection is registered.
    reply = await context.large_responses.run(work)
    return await reply if isinstance(reply, Awaitable) else reply


def _register(
    context: BrokerContext, connection: Connection, request: RemotingCommand
) -> Generator[None, None, Reply]:
    before = context.tables.flush.versions
    # With 2,400 subscriptions, each of these steps takes about 2 ms.
    plain = plain_body(request, HeartbeatData)
    yield
    heartbeat = typed_body(plain, HeartbeatData)
    del plain
    yield
    check_client_id(heartbeat.client_id)
    consumers = heartbeat.consumer_data_set
    produced = [producer.group_name for producer in heartbeat.producer_data_set]
    for group in (*(consumer.group_name for consumer in consumers), *produced):
        check_group(group)
    # From here on without a pause: other heartbeats change the groups, too, and each table is written once.
    subscribed = context.clients.consumers.check(connection, consumers, without_sub=heartbeat.without_sub)
    context.clients.producers.check(connection, produced)
    connection.peer_serialize_type = request.serialize_type
    channel = ClientChannel(
        connection,
        heartbeat.client_id,
        request.language,
        request.version,
        context.runtime.clock.monotonic(),
    )
    stats, now = context.stats.items, context.runtime.clock.monotonic
    for consumer, subscriptions in zip(consumers, subscribed, strict=True):
        notify = _prepare_group(context, consumer)
        began = now()
        context.clients.consumers.register(consumer, channel, subscriptions, notify=notify)
        stats.count_consumer_register(int((now() - began) * 1_000))
    for group in produced:
        began = now()
        context.clients.producers.register(group, channel)
        stats.count_producer_register(int((now() - began) * 1_000))
    response = RemotingCommand(ResponseCode.SUCCESS)
    if TIME_SCALE in request.ext:
        response.set_ext(TIME_SCALE, str(float(context.runtime.clock.scale)))
    return context.tables.flush.answer(response, before)


def _prepare_group(context: BrokerContext, consumer: ConsumerData) -> bool:
    """Create the group and its retry topic if needed; return True if the broker announces its changes."""
    group = context.tables.groups.find(consumer.group_name)
    if group is None:
        return True
    sys_flag = int(TopicSysFlag.UNIT_SUB) if consumer.unit_mode else 0
    context.tables.topics.ensure(
        retry_topic(consumer.group_name), group.retry_queue_nums, topic_sys_flag=sys_flag
    )
    return group.notify_consumer_ids_changed_enable
