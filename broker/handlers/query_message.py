"""QUERY_MESSAGE (12): return messages by key and store time.

Kept from 4.9.4 ``QueryMessageProcessor#queryMessage``: at most 64 records, or 32 with the unique-key flag.
Records of other keys with the same hash are included. Without any record, the request fails with
QUERY_NOT_FOUND (22).
Changed: the broker writes the index when a query needs it (``index.service``). The first query after many
messages therefore takes long, but in small steps, as does a query of many entries; the broker serves other
requests meanwhile. The response has a record once even if it is indexed twice, and omits records that do not
fit into a frame.
Refused: nothing.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.message import QueryMessageRequestHeader, QueryMessageResponseHeader
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.slices.run import run_slices

CODE: Final = RequestCode.QUERY_MESSAGE

# BrokerConfig.defaultQueryMaxNum, MessageStoreConfig.defaultQueryMaxNum.
_UNIQUE_KEY_MAX_NUM: Final = 32
# Messages indexed in one turn of the event loop: about a millisecond, and five when the index begins.
_STEP: Final = 64


async def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    header = request.decode_header(QueryMessageRequestHeader)
    store = context.store
    until = store.max_commit_log_offset
    while not store.update_index(until, _STEP):
        await context.runtime.timers.sleep(0)
    querying = store.query_message(
        header.topic,
        header.key,
        _UNIQUE_KEY_MAX_NUM if header.unique_key_query else header.max_num,
        header.begin_timestamp,
        header.end_timestamp,
    )
    result = await run_slices(context.runtime.timers, querying)
    answer = QueryMessageResponseHeader(
        result.index_last_update_timestamp, result.index_last_update_phyoffset
    )
    if not result.message_count:
        remark = "can not find message, maybe time range not correct"
        return RemotingCommand(ResponseCode.QUERY_NOT_FOUND, answer, remark=remark)
    return RemotingCommand(ResponseCode.SUCCESS, answer, result.body)
