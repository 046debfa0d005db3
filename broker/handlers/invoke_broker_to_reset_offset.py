"""222 INVOKE_BROKER_TO_RESET_OFFSET: rewind (or move on) a group in a topic.

Kept from 4.9.4 ``Broker2Client#resetOffset`` under mode ``classic`` (docs/spec/reset.md D.2, D.3): the order
topic, offsets, online members; one queue without a stored offset fails all; 220 goes oneway to each member in
order of registration, and those before a member that is too old have it when the request fails; the offsets
stored here stay as they are. Kept from 5.3.3 under mode ``server``: D.9, as a whole. Changed: the mode is the
broker's ``resetMode``, or the request's own, and the answer names it; under v53 an unknown topic is 17; mode
``fenced`` is ours. Refused with 1: all but ``classic`` at a slave; a mode that there is not; ``queueId`` >= 0
in classic mode, which 4.9.4 would take for a reset of the whole topic; ``classic`` and ``server`` for a group
that was reset in fenced mode.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import MappingProxyType
from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.reset import classic, fenced, server
from rewindmq.protocol.body.offset_table import ResetOffsetBody
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.reset import InvokeBrokerToResetOffsetResponseHeader, ResetOffsetRequestHeader
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.points import Point
from rewindmq.protocol.remoting.connection import Connection, Reply
from rewindmq.protocol.reset_mode import ResetMode

_Table = dict[MessageQueue, int]
_Reset = Callable[[BrokerContext, RemotingCommand, ResetOffsetRequestHeader], _Table | Awaitable[_Table]]

_MODES: Final = MappingProxyType[ResetMode, _Reset](
    {
        ResetMode.CLASSIC: classic.reset,
        ResetMode.SERVER: server.reset,
        ResetMode.FENCED: fenced.reset,
    }
)


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> Reply:
    _check_mode(request)
    header = request.decode_header(ResetOffsetRequestHeader)
    mode = header.reset_mode or context.config.reset_mode
    if context.config.is_slave and mode is not ResetMode.CLASSIC:
        raise RequestError(ResponseCode.SYSTEM_ERROR, "Can not reset offset in slave broker")
    if context.runtime.probe is not None:
        details = {
            "group": header.group,
            "topic": header.topic,
            "timestamp": header.timestamp,
            "broker": context.config.broker_name,
            "mode": str(mode),
            "client": connection.remote_address,
        }
        context.runtime.probe(Point.RESET_RECEIVED, details)
    result = _MODES[mode](context, request, header)
    return _answer(mode, result) if isinstance(result, dict) else _answer_later(mode, result)


def _check_mode(request: RemotingCommand) -> None:
    wanted = request.ext.get("resetMode")
    if wanted is not None and wanted not in list[object](ResetMode):
        raise RequestError(
            ResponseCode.SYSTEM_ERROR,
            f"resetMode {wanted!r} is none of {', '.join(ResetMode)}; nothing is reset",
        )


def _answer(mode: ResetMode, table: _Table) -> RemotingCommand:
    header = InvokeBrokerToResetOffsetResponseHeader(mode)
    return RemotingCommand(ResponseCode.SUCCESS, header, ResetOffsetBody(table))


async def _answer_later(mode: ResetMode, table: Awaitable[_Table]) -> RemotingCommand:
    return _answer(mode, await table)
