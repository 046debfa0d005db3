"""100 PUT_KV_CONFIG: set one key-value pair.

Kept: the pair is on disk before the answer. Changed: a file that cannot be written is answered 1 and the
old value stays; RocketMQ only logs it. Refused: empty or over-long names and values, with 1.
"""

from __future__ import annotations

from typing import Final

from rewindmq.namesrv.context import NamesrvContext
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.namesrv import PutKVConfigRequestHeader
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.PUT_KV_CONFIG


def handle(context: NamesrvContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    header = request.decode_header(PutKVConfigRequestHeader)
    context.kv_configs.put(header.namespace, header.key, header.value)
    return RemotingCommand(ResponseCode.SUCCESS)
