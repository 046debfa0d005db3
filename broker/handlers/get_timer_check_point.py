"""GET_TIMER_CHECK_POINT (60): return how far timer messages are taken and delivered, for slaves.

Kept from 5.5.1 ``AdminBrokerProcessor#getTimerCheckPoint``: the body is the fields of ``config/timercheck``.
Refused with 3: the request under v42 and v49, as by brokers before 5.0.0.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.GET_TIMER_CHECK_POINT


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    assert context.timers is not None
    return RemotingCommand(ResponseCode.SUCCESS, body=context.timers.progress.encode())
