"""RESET_MASTER_FLUSH_OFFSET (908): correct what a slave of 5.x believes of its master's log.

Kept from 5.3.3 ``AdminBrokerProcessor#resetMasterFlushOffset``: a master ignores the request and returns
SUCCESS.
Refused with 1: a request to a slave. Only slaves that can act as masters have this offset.
Refused with 3: the request under v42 and v49, as by brokers before 5.0.0.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.RESET_MASTER_FLUSH_OFFSET


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    if context.config.is_slave:
        raise RequestError(
            ResponseCode.SYSTEM_ERROR,
            "this slave never acts as a master, so it has no flush offset of its master to reset",
        )
    return RemotingCommand(ResponseCode.SUCCESS)
