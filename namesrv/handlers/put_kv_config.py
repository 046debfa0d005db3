"""PUT_KV_CONFIG (100): store one key-value pair.

Kept: the pair is on disk before the response.
Changed: if the file cannot be written, the request fails with 1 and the old value stays; RocketMQ only logs
it.
Refused with 1: empty or over-long names and values.
"""

from __future__ import annotations

from typing import Final

from rewindmq.namesrv.context import NamesrvContext
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.namesrv import PutKVConfigRequestHeader
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.PUT_KV_CONFIG


async def handle(
    context: NamesrvContext, connection: Connection, request: RemotingCommand
) -> RemotingCommand:
    header = request.decode_header(PutKVConfigRequestHeader)
    await context.kv_configs.put(header.namespace, header.key, header.value)
    return RemotingCommand(ResponseCode.SUCCESS)
