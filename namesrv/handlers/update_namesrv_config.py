"""318 UPDATE_NAMESRV_CONFIG: change the configuration while the name server runs.

Kept: ``key=value`` lines in the body. Changed: a key that is unknown, or that only counts at the start, is
refused (1) where RocketMQ answers success and does nothing; the file that the name server was started with is
not rewritten. Refused: every key but orderMessageEnable.
"""

from __future__ import annotations

import logging
from typing import Final

from rewindmq.namesrv.context import NamesrvContext
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.config.live_properties import change_live
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.UPDATE_NAMESRV_CONFIG

_log = logging.getLogger(__name__)

_LIVE_KEYS: Final = ("orderMessageEnable",)


def handle(context: NamesrvContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    text = request.body if isinstance(request.body, bytes) else b""
    change_live(context.config, text, _LIVE_KEYS, server="name server", source="updateNamesrvConfig")
    _log.warning("configuration changed by %s: %r", connection.remote_address, text.decode())
    return RemotingCommand(ResponseCode.SUCCESS)
