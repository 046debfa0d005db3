"""UPDATE_BROKER_CONFIG (25): change the configuration while the broker runs.

Kept from 4.9.4 ``AdminBrokerProcessor#updateBrokerConfig``: the body has the lines of a property file. If the
broker's permission changes, the broker registers at once.
Changed: the broker accepts only keys that take effect at once (``live_config``). It writes no file, so a
restart undoes the change.
Refused with 1: any other key, and a bad value; then nothing changes. RocketMQ ignores unknown keys and bad
values.
"""

from __future__ import annotations

import logging
from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.UPDATE_BROKER_CONFIG

_log = logging.getLogger(__name__)


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    if not isinstance(request.body, bytes) or not request.body:
        raise RequestError(ResponseCode.SYSTEM_ERROR, "string2Properties error: no key is named")
    context.live_config.update(request.body)
    _log.warning("configuration changed by %s: %r", connection.remote_address, request.body.decode())
    return RemotingCommand(ResponseCode.SUCCESS)
