"""LOCK_BATCH_MQ (41): lock queues for an orderly consumer, or refresh its locks.

Kept (docs/spec/broker.md B.15) from 4.9.4 ``AdminBrokerProcessor#lockBatchMQ`` and ``RebalanceLockManager``:
the broker grants a queue that is free, that the client holds already, or whose lock was not refreshed for
more than 60 s. The response lists what the client holds now. The broker does not check that the client
belongs to the group, or that topic and queue exist. Kept from 5.3.3: ``onlyThisBroker`` has no effect while
``lockInStrictMode`` is off, which is the default. RewindMQ has no strict mode, in which 5.3.3 also asks the
replicas.
Changed: the broker holds at most ``MAX_QUEUE_LOCKS`` locks, ``MAX_QUEUE_LOCKS_PER_CONNECTION`` of them for
one connection; beyond that it locks no further queue. It removes expired locks, and those of closed
connections if the table is full.
Refused with 1, because the broker would store them: names outside RocketMQ's character table; client ids and
broker names over ``MAX_CLIENT_ID_LENGTH`` characters.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.limits import MAX_CLIENT_ID_LENGTH
from rewindmq.protocol.body.lock import LockBatchRequestBody, LockBatchResponseBody
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.names import check_group, check_topic
from rewindmq.protocol.remoting.connection import Connection, Reply

CODE: Final = RequestCode.LOCK_BATCH_MQ


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> Reply:
    body = decode_body(request, LockBatchRequestBody)
    check_group(body.consumer_group)
    _check_length("client id", body.client_id)
    for topic in {queue.topic for queue in body.mq_set}:
        check_topic(topic)
    for broker_name in {queue.broker_name for queue in body.mq_set}:
        _check_length("broker name", broker_name)
    granted = context.clients.queue_locks.lock(connection, body.consumer_group, body.client_id, body.mq_set)
    return context.large_responses.reply(request, len(granted), lambda: LockBatchResponseBody(granted))


def _check_length(what: str, name: str) -> None:
    if not 0 < len(name) <= MAX_CLIENT_ID_LENGTH:
        raise RequestError(
            ResponseCode.SYSTEM_ERROR, f"the {what} must have 1 to {MAX_CLIENT_ID_LENGTH} characters"
        )
