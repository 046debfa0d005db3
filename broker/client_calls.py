"""Asking a client something and waiting for its answer (docs/spec/protocol.md 3.2, 3.5).

Source: RocketMQ 4.9.4 ``AdminBrokerProcessor#callConsumer``, ``Broker2Client``. The request travels on the
connection that the client opened, in the codec of its heartbeat; the answer goes on to whoever asked, in the
codec of theirs.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.client_channel import ClientChannel
from rewindmq.broker.context import BrokerContext
from rewindmq.protocol import fastjson
from rewindmq.protocol.body import RemotingBody
from rewindmq.protocol.body_codec import decode_body
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.errors import BodyError, RemotingError, RequestError, RequestTimeoutError
from rewindmq.protocol.version import MQVersion, version_name

# What Broker2Client waits for an answer that it passes on, seconds; not scaled.
FORWARD_SECONDS: Final = 10.0


def find_client(context: BrokerContext, group: str, client_id: str | None) -> ClientChannel:
    """The member to forward 307 and 309 to.

    Raises:
        RequestError: 1, it is not connected, or older than 3.1.8.
    """
    channel = None if client_id is None else context.consumers.find_member(group, client_id)
    if channel is None:
        raise RequestError(ResponseCode.SYSTEM_ERROR, f"The Consumer <{group}> <{client_id}> not online")
    if channel.is_older_than(MQVersion.V3_1_8_SNAPSHOT):
        raise RequestError(
            ResponseCode.SYSTEM_ERROR,
            f"The Consumer <{client_id}> Version <{version_name(channel.version)}> too low to finish, please"
            " upgrade it to V3_1_8_SNAPSHOT",
        )
    return channel


async def forward(
    channel: ClientChannel,
    group: str,
    request: RemotingCommand,
    body_type: type[RemotingBody],
    *,
    body: bytes | None = None,
    **fields: str,
) -> RemotingCommand:
    """Send a request on to a client, and give its answer as it came.

    Args:
        body: sent instead of the request's own.
        fields: ext fields sent beside the request's own.
        body_type: what a successful answer carries.

    Raises:
        RequestError: 207, no answer within 10 s; 1, the connection went, or the answer cannot be read.
    """
    command = RemotingCommand(
        request.code, body=request.body if body is None else body, ext_fields={**request.ext, **fields}
    )
    name = f"<{group}> <{channel.client_id}>"
    try:
        answer = await channel.connection.invoke(command, FORWARD_SECONDS)
    except RequestTimeoutError as error:
        raise RequestError(ResponseCode.CONSUME_MSG_TIMEOUT, f"consumer {name} Timeout: {error}") from None
    except RemotingError as error:
        raise RequestError(ResponseCode.SYSTEM_ERROR, f"invoke consumer {name} Exception: {error}") from None
    if answer.code != ResponseCode.SUCCESS:
        return RemotingCommand(answer.code, remark=answer.remark)
    try:
        return RemotingCommand(ResponseCode.SUCCESS, body=_translated(answer, request, body_type))
    except BodyError as error:
        raise _unreadable(name, error) from None


def _translated(
    answer: RemotingCommand, request: RemotingCommand, body_type: type[RemotingBody]
) -> bytes | RemotingBody:
    """The answer's body for whoever sent ``request``.

    Between peers of one kind of body it stays as it is: foreign clients write some tables in ways that only
    their own tools read (pyrocketmq's ``mqTable``), and members that are not known here must not be lost.
    """
    if _speaks_msgpack(answer) or _speaks_msgpack(request):
        return decode_body(answer, body_type)
    content = bytes(answer.body) if isinstance(answer.body, (bytes, memoryview)) else b""
    if not isinstance(fastjson.loads(content), dict):
        raise BodyError(f"{body_type.__name__}: not an object")
    return content


def _speaks_msgpack(command: RemotingCommand) -> bool:
    return command.serialize_type is SerializeType.MSGPACK


def _unreadable(name: str, error: BodyError) -> RequestError:
    return RequestError(
        ResponseCode.SYSTEM_ERROR, f"consumer {name} gave an answer that cannot be read: {error.remark}"
    )
