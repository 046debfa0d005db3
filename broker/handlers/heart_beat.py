"""34 HEART_BEAT: a client says which groups it produces and consumes for.

Kept from 4.9.4 ``ClientManageProcessor#heartBeat``: creates group and %RETRY% topic, registers both under the
connection, announces a change (40) to every member, the new one included. Changed: requests to this client
travel in the codec of its heartbeat from now on; ``withoutSub`` (5.x) keeps the subscriptions; a client that
tells its time scale is told the broker's. Refused: a group outside RocketMQ's character table, with 1 and
without registering anything; one group too many, with 1.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.clients.channel import ClientChannel
from rewindmq.broker.context import BrokerContext
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
    heartbeat = decode_body(request, HeartbeatData)
    for consumer in heartbeat.consumer_data_set:
        check_group(consumer.group_name)
    for producer in heartbeat.producer_data_set:
        check_group(producer.group_name)
    connection.peer_serialize_type = request.serialize_type
    channel = ClientChannel(
        connection,
        heartbeat.client_id,
        request.language,
        request.version,
        context.runtime.clock.monotonic(),
    )
    for consumer in heartbeat.consumer_data_set:
        notify = _prepare_group(context, consumer)
        context.consumers.register(consumer, channel, notify=notify, without_sub=heartbeat.without_sub)
    for producer in heartbeat.producer_data_set:
        context.producers.register(producer.group_name, channel)
    response = RemotingCommand(ResponseCode.SUCCESS)
    if TIME_SCALE in request.ext:
        response.set_ext(TIME_SCALE, str(float(context.runtime.clock.scale)))
    return context.table_flush.answer(response)


def _prepare_group(context: BrokerContext, consumer: ConsumerData) -> bool:
    """See to the group's settings and retry topic; True when its changes are to be announced."""
    group = context.groups.find(consumer.group_name)
    if group is None:
        return True
    sys_flag = int(TopicSysFlag.UNIT_SUB) if consumer.unit_mode else 0
    context.topics.ensure(retry_topic(consumer.group_name), group.retry_queue_nums, topic_sys_flag=sys_flag)
    return group.notify_consumer_ids_changed_enable
