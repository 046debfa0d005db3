"""INVOKE_BROKER_TO_GET_CONSUMER_STATUS (223): return the offsets that a group's consumers have in memory.

Kept from 4.9.4 ``Broker2Client#getConsumeStatus``: the request fails with 1 for a group without consumers,
and for a group with a consumer older than 3.0.7. The broker sends GET_CONSUMER_STATUS_FROM_CLIENT (221) to
each consumer, which has 5 s to respond. The result omits consumers that do not respond.
Changed: the broker asks all consumers at the same time, so one that hangs does not delay the response.
``clientAddr``, which RocketMQ compares with client ids only, may also be a client's address.
A response of a client with more than ``MAX_TABLE_VALUES`` values counts as none.
Refused, where RocketMQ returns an empty table: a ``clientAddr`` that matches no consumer (1), and a request
to which no consumer responds (1, or CONSUME_MSG_TIMEOUT (207) after 5 s).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Generator, Sequence
from functools import partial
from typing import Final

from rewindmq.broker.clients.channel import ClientChannel
from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.body.offset_table import GetConsumerStatusBody
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.codec.request_limits import MAX_TABLE_VALUES
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError, RequestTimeoutError, RewindMQError
from rewindmq.protocol.header.reset import GetConsumerStatusRequestHeader
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.slices.large_responses import SMALL_ENTRIES
from rewindmq.protocol.version import MQVersion, version_name

CODE: Final = RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS

_log = logging.getLogger(__name__)

# Broker2Client's timeout, seconds; not scaled.
_TIMEOUT: Final = 5.0
# A larger response is decoded on a worker thread: about 250 queues.
_SMALL_BODY_BYTES: Final = 16_384


def handle(
    context: BrokerContext, connection: Connection, request: RemotingCommand
) -> Awaitable[RemotingCommand]:
    header = request.decode_header(GetConsumerStatusRequestHeader)
    return _ask_all(context, request, _consumers(context, header), header)


def _consumers(context: BrokerContext, header: GetConsumerStatusRequestHeader) -> list[ClientChannel]:
    """Return the consumers to ask."""
    group = context.clients.consumers.find(header.group)
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
    context: BrokerContext,
    request: RemotingCommand,
    consumers: Sequence[ClientChannel],
    header: GetConsumerStatusRequestHeader,
) -> RemotingCommand:
    answers = await asyncio.gather(
        *(_ask(consumer, header) for consumer in consumers), return_exceptions=True
    )
    body = GetConsumerStatusBody()
    failure: RewindMQError | None = None
    for consumer, answer in zip(consumers, answers, strict=True):
        try:
            if isinstance(answer, BaseException):
                raise answer
            body.consumer_table[consumer.client_id] = await _offsets(context, answer)
        except RewindMQError as error:
            _log.warning(
                "GET_CONSUMER_STATUS_FROM_CLIENT (221) to %s of group %s failed: %s",
                consumer.client_id,
                header.group,
                error,
            )
            failure = error
    if not body.consumer_table and failure is not None:
        is_late = isinstance(failure, RequestTimeoutError)
        raise RequestError(
            ResponseCode.CONSUME_MSG_TIMEOUT if is_late else ResponseCode.SYSTEM_ERROR,
            f"no consumer of group <{header.group}> has sent its offsets: {failure}",
        )
    if sum(map(len, body.consumer_table.values())) <= SMALL_ENTRIES:
        return RemotingCommand(ResponseCode.SUCCESS, body=body)
    return await context.large_responses.build(request, _whole(body))


def _whole(body: GetConsumerStatusBody) -> Generator[None, None, GetConsumerStatusBody]:
    """Return the body, which the clients' responses have built."""
    yield from ()
    return body


async def _ask(consumer: ClientChannel, header: GetConsumerStatusRequestHeader) -> RemotingCommand:
    question = GetConsumerStatusRequestHeader(header.topic, header.group)
    command = RemotingCommand(RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, question)
    return (await consumer.connection.invoke(command, _TIMEOUT)).require_success()


async def _offsets(context: BrokerContext, answer: RemotingCommand) -> dict[MessageQueue, int]:
    if answer.received_bytes <= _SMALL_BODY_BYTES:
        return _decode(answer)
    return await context.large_responses.run_on_worker(context.runtime.workers, partial(_decode, answer))


def _decode(answer: RemotingCommand) -> dict[MessageQueue, int]:
    return decode_body(answer, GetConsumerStatusBody, MAX_TABLE_VALUES).message_queue_table
