"""318 UPDATE_NAMESRV_CONFIG: change the configuration while the name server runs.

Kept: ``key=value`` lines in the body. Changed: a key that is unknown, or that only counts at the start, is
refused (1) where RocketMQ answers success and does nothing; the file that the name server was started with is
not rewritten. Refused: every key but orderMessageEnable.
"""

from __future__ import annotations

import msgspec

from rewindmq.namesrv.config import NamesrvConfig
from rewindmq.namesrv.context import NamesrvContext
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import ConfigError, RequestError
from rewindmq.protocol.property_file import convert_properties, parse_properties_file
from rewindmq.protocol.remoting.connection import Connection

_LIVE_KEY = "orderMessageEnable"
_MAX_BYTES = 65_536


def handle(context: NamesrvContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    text = request.body if isinstance(request.body, (bytes, bytearray, memoryview)) else b""
    if len(text) > _MAX_BYTES:
        raise _refusal(f"more than {_MAX_BYTES} bytes of configuration")
    try:
        entries = parse_properties_file(bytes(text).decode())
        loaded = convert_properties(NamesrvConfig, entries, "updateNamesrvConfig")
    except (UnicodeDecodeError, ConfigError) as error:
        raise _refusal(f"string2Properties error: {error}") from None
    fixed = sorted({entry.key for entry in entries} - {_LIVE_KEY})
    if fixed or not entries:
        what = ", ".join(fixed) or "nothing"
        raise _refusal(f"{what} cannot be changed while the name server runs; {_LIVE_KEY} can")
    for name, value in loaded.fields.items():
        # Frozen for everybody else: what reads a key once must not be changed behind its back.
        msgspec.structs.force_setattr(context.config, name, value)
    return RemotingCommand(ResponseCode.SUCCESS)


def _refusal(remark: str) -> RequestError:
    return RequestError(ResponseCode.SYSTEM_ERROR, remark)
