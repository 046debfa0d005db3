"""41 LOCK_BATCH_MQ: an orderly consumer takes queues for itself, or refreshes its locks.

Kept (docs/spec/broker.md B.15) from 4.9.4 ``AdminBrokerProcessor#lockBatchMQ`` and ``RebalanceLockManager``:
a queue is granted when it is free, the client's own, or was not refreshed for more than 60 s; the answer
names what the client holds now; the broker does not check that the client belongs to the group, or that topic
and queue exist. Kept from 5.3.3: ``onlyThisBroker`` makes no difference while ``lockInStrictMode`` is off,
which is the default; the strict mode, which asks the replicas too, is left out with them. Changed: at most
``MAX_QUEUE_LOCKS`` locks, then none is granted to a queue that has none; expired ones are forgotten.
Refused: names outside RocketMQ's character table, and client ids and broker names over
``MAX_CLIENT_ID_LENGTH`` characters, with 1, since they would be kept.
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
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.LOCK_BATCH_MQ


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    body = decode_body(request, LockBatchRequestBody)
    check_group(body.consumer_group)
    _check_length("client id", body.client_id)
    for topic in {queue.topic for queue in body.mq_set}:
        check_topic(topic)
    for broker_name in {queue.broker_name for queue in body.mq_set}:
        _check_length("broker name", broker_name)
    granted = context.queue_locks.lock(body.consumer_group, body.client_id, body.mq_set)
    return RemotingCommand(ResponseCode.SUCCESS, body=LockBatchResponseBody(granted))


def _check_length(what: str, name: str) -> None:
    if not 0 < len(name) <= MAX_CLIENT_ID_LENGTH:
        raise RequestError(
            ResponseCode.SYSTEM_ERROR, f"the {what} must have 1 to {MAX_CLIENT_ID_LENGTH} characters"
        )
