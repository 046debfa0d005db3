"""INVOKE_BROKER_TO_GET_CONSUMER_STATUS (223): return the offsets that a group's consumers have in memory.

Kept from 4.9.4 ``Broker2Client#getConsumeStatus``: the request fails with 1 for a group without consumers,
and for a group with a consumer older than 3.0.7. The broker sends GET_CONSUMER_STATUS_FROM_CLIENT (221) to
each consumer, which has 5 s to respond. The result omits consumers that do not respond.
Changed: the broker asks all consumers at the same time, so one that hangs does not delay the response.
``clientAddr``, which RocketMQ compares with client ids only, may also be a client's address.
Refused, where RocketMQ returns an empty table: a ``clientAddr`` that matches no consumer (1), and a request
to which no consumer responds (1, or CONSUME_MSG_TIMEOUT (207) after 5 s).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from typing import Final

from rewindmq.broker.clients.channel import ClientChannel
from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.body.offset_table import GetConsumerStatusBody
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError, RequestTimeoutError, RewindMQError
from rewindmq.protocol.header.reset import GetConsumerStatusRequestHeader
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.version import MQVersion, version_name

CODE: Final = RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS

_log = logging.getLogger(__name__)

# Broker2Client's timeout, seconds; not scaled.
_TIMEOUT: Final = 5.0


def handle(
    context: BrokerContext, connection: Connection, request: RemotingCommand
) -> Awaitable[RemotingCommand]:
    header = request.decode_header(GetConsumerStatusRequestHeader)
    return _ask_all(_consumers(context, header), header)


def _consumers(context: BrokerContext, header: GetConsumerStatusRequestHeader) -> list[ClientChannel]:
    """Return the consumers to ask."""
    group = context.consumers.find(header.group)
    if group is None:
        raise RequestError(
            ResponseCode.SYSTEM_ERROR, f"No Any Consumer online in the consumer group: [{header.group}]"
        )
    channels = list(group.channels.values())
    too_old = next((item for item in channels if item.is_older_than(MQVersion.V3_0_7_SNAPSHOT)), None)
    if too_old is not None:
        raise RequestError(
            ResponseCode.SYSTEM_ERROR,
            f"the client does not support this feature. version={version_name(too_old.version)}",
        )
    wanted = (header.client_addr or "").strip()
    if not wanted:
        return channels
    chosen = [item for item in channels if wanted in (item.client_id, item.connection.remote_address)]
    if not chosen:
        raise RequestError(ResponseCode.SYSTEM_ERROR, f"The Consumer <{header.group}> <{wanted}> not online")
    return chosen


async def _ask_all(
    consumers: Sequence[ClientChannel], header: GetConsumerStatusRequestHeader
) -> RemotingCommand:
    outcomes = await asyncio.gather(
        *(_ask(consumer, header) for consumer in consumers), return_exceptions=True
    )
    table: dict[str, dict[MessageQueue, int]] = {}
    failure: RewindMQError | None = None
    for consumer, outcome in zip(consumers, outcomes, strict=True):
        if isinstance(outcome, RewindMQError):
            _log.warning(
                "GET_CONSUMER_STATUS_FROM_CLIENT (221) to %s of group %s failed: %s",
                consumer.client_id,
                header.group,
                outcome,
            )
            failure = outcome
        elif isinstance(outcome, BaseException):
            raise outcome
        else:
            table[consumer.client_id] = outcome
    if not table and failure is not None:
        is_late = isinstance(failure, RequestTimeoutError)
        raise RequestError(
            ResponseCode.CONSUME_MSG_TIMEOUT if is_late else ResponseCode.SYSTEM_ERROR,
            f"no consumer of group <{header.group}> has sent its offsets: {failure}",
        )
    return RemotingCommand(ResponseCode.SUCCESS, body=GetConsumerStatusBody(consumer_table=table))


async def _ask(consumer: ClientChannel, header: GetConsumerStatusRequestHeader) -> dict[MessageQueue, int]:
    question = GetConsumerStatusRequestHeader(header.topic, header.group)
    command = RemotingCommand(RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, question)
    answer = (await consumer.connection.invoke(command, _TIMEOUT)).require_success()
    return decode_body(answer, GetConsumerStatusBody).message_queue_table
