"""GET_NAMESRV_CONFIG (319): return the configuration, as lines of a property file.

Kept: every key with its value.
Changed: the response has only the keys of this name server.
Refused: nothing.
"""

from __future__ import annotations

from typing import Final

from rewindmq.namesrv.context import NamesrvContext
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.config.live_properties import live_text
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.GET_NAMESRV_CONFIG


def handle(context: NamesrvContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    return RemotingCommand(ResponseCode.SUCCESS, body=live_text(context.config))
