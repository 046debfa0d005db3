"""GET_ALL_CONSUMER_OFFSET (43): return every stored offset, for a slave to copy.

Kept from 4.9.4 ``AdminBrokerProcessor#getAllConsumerOffset``: the table of consumerOffset.json.
Changed: the response adds the epochs of fenced resets, in a field that RocketMQ ignores.
Refused: nothing.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.body.offset_table import ConsumerOffsetSerializeWrapper
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.GET_ALL_CONSUMER_OFFSET


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    offsets, epochs = context.offsets.tables()
    return RemotingCommand(ResponseCode.SUCCESS, body=ConsumerOffsetSerializeWrapper(offsets, epochs or None))
