"""INVOKE_BROKER_TO_RESET_OFFSET (222): move a group to other offsets in a topic, back or forward.

Kept from 4.9.4 ``Broker2Client#resetOffset`` in mode ``classic`` (docs/spec/reset.md D.2, D.3):

- The broker checks the topic, then the offsets, then the online consumers. One queue without a stored offset
  fails the whole request.
- RESET_CONSUMER_CLIENT_OFFSET (220) goes oneway to each consumer in order of registration. If a consumer is
  too old, the request fails, but the consumers before it have received their notification.
- The broker's stored offsets stay as they are.

Kept from 5.3.3 in mode ``server``: all of docs/spec/reset.md D.9.
Changed: the mode is the request's own, else the broker's ``resetMode``, else the release's, and the response
names it. Under v53 an unknown topic fails with TOPIC_NOT_EXIST (17). Mode ``fenced`` is RewindMQ's own.
Refused with 1: every mode except ``classic`` at a slave; an unknown mode; ``queueId`` >= 0 in classic mode,
which 4.9.4 would take for a reset of the whole topic; ``classic`` and ``server`` for a group that was reset
in fenced mode.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import MappingProxyType
from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.reset import classic, fenced, server
from rewindmq.broker.reset.build import Resets
from rewindmq.broker.reset.targets import reset_body
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.reset import InvokeBrokerToResetOffsetResponseHeader, ResetOffsetRequestHeader
from rewindmq.protocol.points import Point
from rewindmq.protocol.remoting.connection import Connection, Reply
from rewindmq.protocol.reset_mode import ResetMode

CODE: Final = RequestCode.INVOKE_BROKER_TO_RESET_OFFSET

# Queue id to offset.
_Table = dict[int, int]
_Reset = Callable[[Resets, RemotingCommand, ResetOffsetRequestHeader], _Table | Awaitable[_Table]]

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
    mode = header.reset_mode or context.config.default_reset_mode
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
    result = _MODES[mode](context.resets, request, header)
    if isinstance(result, dict):
        return _answer(context, request, header.topic, mode, result)
    return _answer_later(context, request, header.topic, mode, result)


def _check_mode(request: RemotingCommand) -> None:
    wanted = request.ext.get("resetMode")
    if wanted is not None and wanted not in list[object](ResetMode):
        raise RequestError(
            ResponseCode.SYSTEM_ERROR,
            f"resetMode {wanted!r} is none of {', '.join(ResetMode)}; nothing is reset",
        )


def _answer(
    context: BrokerContext, request: RemotingCommand, topic: str, mode: ResetMode, table: _Table
) -> Reply:
    header = InvokeBrokerToResetOffsetResponseHeader(mode)
    body = reset_body(context.resets, topic, table)
    return context.large_responses.reply_in_slices(request, len(table), body, header=header)


async def _answer_later(
    context: BrokerContext,
    request: RemotingCommand,
    topic: str,
    mode: ResetMode,
    table: Awaitable[_Table],
) -> RemotingCommand | None:
    answer = _answer(context, request, topic, mode, await table)
    return await answer if isinstance(answer, Awaitable) else answer
