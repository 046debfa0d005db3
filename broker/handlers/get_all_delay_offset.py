"""GET_ALL_DELAY_OFFSET (45): return the progress of each delay level, for a slave to copy.

Kept from 4.9.4 ``AdminBrokerProcessor#getAllDelayOffset``: the table as it is in memory.
Changed and refused: nothing.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.body.offset_table import DelayOffsetSerializeWrapper
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.GET_ALL_DELAY_OFFSET


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    return RemotingCommand(
        ResponseCode.SUCCESS, body=DelayOffsetSerializeWrapper(dict(context.delays.offsets.table))
    )
