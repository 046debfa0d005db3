"""UPDATE_NAMESRV_CONFIG (318): change the configuration while the name server runs.

Kept: the body has ``key=value`` lines.
Changed: an unknown key, or a key that is only read at the start, fails with 1; RocketMQ succeeds without
effect. The name server does not rewrite its configuration file.
Refused: every key except orderMessageEnable.
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
    change_live((context.config,), text, _LIVE_KEYS, server="name server", source="updateNamesrvConfig")
    _log.warning("configuration changed by %s: %r", connection.remote_address, text.decode())
    return RemotingCommand(ResponseCode.SUCCESS)
