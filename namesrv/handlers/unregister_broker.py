"""UNREGISTER_BROKER (104): remove one id of a broker.

Kept: the name server removes the id even if another address holds it by now. The request succeeds for an
unknown id. 5.3.3 removes the id from a queue a few milliseconds later; here it is removed before the
response.
"""

from __future__ import annotations

import logging
from typing import Final

from rewindmq.namesrv.context import NamesrvContext
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.namesrv import UnRegisterBrokerRequestHeader
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.UNREGISTER_BROKER

_log = logging.getLogger(__name__)


def handle(context: NamesrvContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    header = request.decode_header(UnRegisterBrokerRequestHeader)
    context.routes.unregister(header.broker_name, header.broker_id, header.broker_addr)
    _log.info("broker %s id %d at %s left", header.broker_name, header.broker_id, header.broker_addr)
    return RemotingCommand(ResponseCode.SUCCESS)
