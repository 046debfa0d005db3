"""DELETE_KV_CONFIG (102): remove one key-value pair.

Kept: the request succeeds for an unknown pair.
Changed: if the file cannot be written, the request fails with 1 and the pair stays.
"""

from __future__ import annotations

from typing import Final

from rewindmq.namesrv.context import NamesrvContext
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.namesrv import DeleteKVConfigRequestHeader
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.DELETE_KV_CONFIG


async def handle(
    context: NamesrvContext, connection: Connection, request: RemotingCommand
) -> RemotingCommand:
    header = request.decode_header(DeleteKVConfigRequestHeader)
    await context.kv_configs.delete(header.namespace, header.key)
    return RemotingCommand(ResponseCode.SUCCESS)
