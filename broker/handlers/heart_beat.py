"""HEART_BEAT (34): register the groups for which a client produces and consumes.

Kept from 4.9.4 ``ClientManageProcessor#heartBeat``: the broker creates the group and its %RETRY% topic, and
registers both under the connection. It sends a change to every consumer of the group, the new one included
(NOTIFY_CONSUMER_IDS_CHANGED, 40).
Changed: later requests to this client use the serialization type of the heartbeat. ``withoutSub`` (5.x) keeps
the subscriptions. If the client sends its time scale, the response has the broker's.
Refused with 1, before anything is registered: a group name outside RocketMQ's character table, and more
groups, larger subscriptions or a longer client id than docs/limits.md allows. Refused with 1, too: a new
group if the table of groups or topics is full.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.clients.channel import ClientChannel
from rewindmq.broker.context import BrokerContext
from rewindmq.broker.limits import check_client_id
from rewindmq.protocol.body.heartbeat import ConsumerData, HeartbeatData
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.client import TIME_SCALE
from rewindmq.protocol.message.sysflag import TopicSysFlag
from rewindmq.protocol.names import check_group, retry_topic
from rewindmq.protocol.remoting.connection import Connection, Reply

CODE: Final = RequestCode.HEART_BEAT


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> Reply:
    before = context.table_flush.versions
    heartbeat = decode_body(request, HeartbeatData)
    check_client_id(heartbeat.client_id)
    consumed = [consumer.group_name for consumer in heartbeat.consumer_data_set]
    produced = [producer.group_name for producer in heartbeat.producer_data_set]
    for group in (*consumed, *produced):
        check_group(group)
    consumers = heartbeat.consumer_data_set
    subscribed = context.consumers.check(connection, consumers, without_sub=heartbeat.without_sub)
    context.producers.check(connection, produced)
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
        context.consumers.register(consumer, channel, subscriptions, notify=notify)
        stats.count_consumer_register(int((now() - began) * 1_000))
    for group in produced:
        began = now()
        context.producers.register(group, channel)
        stats.count_producer_register(int((now() - began) * 1_000))
    response = RemotingCommand(ResponseCode.SUCCESS)
    if TIME_SCALE in request.ext:
        response.set_ext(TIME_SCALE, str(float(context.runtime.clock.scale)))
    return context.table_flush.answer(response, before)


def _prepare_group(context: BrokerContext, consumer: ConsumerData) -> bool:
    """Create the group and its retry topic if needed; return True if the broker announces its changes."""
    group = context.groups.find(consumer.group_name)
    if group is None:
        return True
    sys_flag = int(TopicSysFlag.UNIT_SUB) if consumer.unit_mode else 0
    context.topics.ensure(retry_topic(consumer.group_name), group.retry_queue_nums, topic_sys_flag=sys_flag)
    return group.notify_consumer_ids_changed_enable
