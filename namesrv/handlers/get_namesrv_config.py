"""319 GET_NAMESRV_CONFIG: the configuration, as lines of a property file.

Kept: every key with its value. Changed: keys that this name server does not have are not listed.
"""

from __future__ import annotations

import msgspec

from rewindmq.namesrv.context import NamesrvContext
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.property_file import format_properties_file
from rewindmq.protocol.remoting.connection import Connection


def handle(context: NamesrvContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    config = context.config
    fields = ((field, getattr(config, field.name)) for field in msgspec.structs.fields(config))
    values = {field.encode_name: value for field, value in fields if value is not None}
    return RemotingCommand(ResponseCode.SUCCESS, body=format_properties_file(values).encode())
