"""25 UPDATE_BROKER_CONFIG: change the configuration while the broker runs.

Kept from 4.9.4 ``AdminBrokerProcessor#updateBrokerConfig``: the body is lines of a property file; a broker
whose permission changed registers at once. Changed: only keys that count at once are taken (``live_config``),
and nothing is written to a file, so a restart undoes it. Refused: any other key, and a bad value, with 1;
then nothing changes (there: unknown keys are left out, bad values too).
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
