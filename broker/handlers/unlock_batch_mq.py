"""UNLOCK_BATCH_MQ (42): release an orderly consumer's locks.

Kept from 4.9.4 ``AdminBrokerProcessor#unlockBatchMQ``: the broker releases only the client's own locks,
ignores all other queues, and succeeds. Clients send the request oneway when a queue moves, and wait for the
response when a consumer stops. 5.3.3's ``onlyThisBroker`` has no effect, see ``lock_batch_mq``.
Changed and refused: nothing.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.body.lock import UnlockBatchRequestBody
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.UNLOCK_BATCH_MQ


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    body = decode_body(request, UnlockBatchRequestBody)
    context.clients.queue_locks.unlock(body.consumer_group, body.client_id, body.mq_set)
    return RemotingCommand(ResponseCode.SUCCESS)
