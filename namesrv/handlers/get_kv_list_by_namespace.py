"""GET_KVLIST_BY_NAMESPACE (219): return all pairs of a namespace.

Kept: a namespace that was never written fails with QUERY_NOT_FOUND (22) and RocketMQ's remark.
"""

from __future__ import annotations

from typing import Final

from rewindmq.namesrv.context import NamesrvContext
from rewindmq.namesrv.kv_response import pairs_response
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.namesrv import GetKVListByNamespaceRequestHeader
from rewindmq.protocol.remoting.connection import Connection, Reply

CODE: Final = RequestCode.GET_KVLIST_BY_NAMESPACE


def handle(context: NamesrvContext, connection: Connection, request: RemotingCommand) -> Reply:
    header = request.decode_header(GetKVListByNamespaceRequestHeader)
    if context.kv_configs.namespace(header.namespace) is None:
        raise RequestError(ResponseCode.QUERY_NOT_FOUND, f"No config item, Namespace: {header.namespace}")
    return pairs_response(context, request, header.namespace)
