"""GET_KV_CONFIG (101): return one value.

Kept: an unknown pair fails with QUERY_NOT_FOUND (22) and RocketMQ's remark.
"""

from __future__ import annotations

from typing import Final

from rewindmq.namesrv.context import NamesrvContext
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.namesrv import GetKVConfigRequestHeader, GetKVConfigResponseHeader
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.GET_KV_CONFIG


def handle(context: NamesrvContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    header = request.decode_header(GetKVConfigRequestHeader)
    value = context.kv_configs.get(header.namespace, header.key)
    if value is None:
        raise RequestError(
            ResponseCode.QUERY_NOT_FOUND,
            f"No config item, Namespace: {header.namespace} Key: {header.key}",
        )
    return RemotingCommand(ResponseCode.SUCCESS, GetKVConfigResponseHeader(value=value))
