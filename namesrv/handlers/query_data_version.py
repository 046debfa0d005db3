"""QUERY_DATA_VERSION (322): check whether a broker's topics have changed since it registered.

Kept: an equal version refreshes the broker's registration. The response's body is the name server's version.
Refused with 3: the request under v42, as 4.2.0 does not know it.
"""

from __future__ import annotations

from typing import Final

from rewindmq.namesrv.context import NamesrvContext
from rewindmq.protocol.body.registration import DataVersion
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.namesrv import QueryDataVersionRequestHeader, QueryDataVersionResponseHeader
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.QUERY_DATA_VERSION


def handle(context: NamesrvContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    header = request.decode_header(QueryDataVersionRequestHeader)
    version = decode_body(request, DataVersion)
    known = context.routes.query_data_version(header.broker_addr, version, context.clock.monotonic())
    return RemotingCommand(
        ResponseCode.SUCCESS, QueryDataVersionResponseHeader(changed=known != version), body=known
    )
