"""The pairs of a namespace as a response: GET_KVLIST_BY_NAMESPACE (219) and REGISTER_BROKER (103)."""

from __future__ import annotations

from typing import Final

from rewindmq.namesrv.context import NamesrvContext
from rewindmq.protocol.body.kv import KVTable
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.command import CommandHeader, RemotingCommand
from rewindmq.protocol.remoting.connection import Reply

# This many bytes of text count like an entry of the body.
_BYTES_PER_ENTRY: Final = 64


def pairs_response(
    context: NamesrvContext, request: RemotingCommand, namespace: str, header: CommandHeader | None = None
) -> Reply:
    """Return the response with all pairs of a namespace; without a body if it was never written."""
    pairs = context.kv_configs.namespace(namespace)
    if pairs is None:
        return RemotingCommand(ResponseCode.SUCCESS, header)
    entries = max(len(pairs), context.kv_configs.size // _BYTES_PER_ENTRY)
    return context.large_responses.reply(request, entries, lambda: KVTable(table=pairs), header)
