"""104 UNREGISTER_BROKER: one id of a broker leaves.

Kept: the id goes whatever address holds it by now, and leaving twice succeeds. 5.3.3 does it a few
milliseconds later from a queue; here it is done when the answer goes out.
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
