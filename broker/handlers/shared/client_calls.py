"""Requests that the broker forwards to a client (docs/spec/protocol.md 3.2, 3.5).

Source: RocketMQ 4.9.4 ``AdminBrokerProcessor#callConsumer``, ``Broker2Client``. The request travels on the
connection that the client opened, in the serialization type of the client's heartbeat. The sender gets the
response in the serialization type of its own request.
"""

from __future__ import annotations

from rewindmq.broker.clients.channel import CALL_CLIENT_SECONDS, ClientChannel
from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.body import RemotingBody
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.codec import fastjson
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.errors import BodyError, RemotingError, RequestError, RequestTimeoutError
from rewindmq.protocol.version import MQVersion, version_name


def find_client(context: BrokerContext, group: str, client_id: str | None) -> ClientChannel:
    """Return the consumer to which GET_CONSUMER_RUNNING_INFO and CONSUME_MESSAGE_DIRECTLY go.

    Raises:
        RequestError: SYSTEM_ERROR (1), the consumer is not connected, or older than 3.1.8.
    """
    channel = None if client_id is None else context.clients.consumers.find_consumer(group, client_id)
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
    """Forward a request to a client and return the client's response.

    Args:
        body: sent instead of the request's own body.
        fields: ext fields sent beside the request's own.
        body_type: the type of a successful response's body.

    Raises:
        RequestError: CONSUME_MSG_TIMEOUT (207), the client does not respond within 10 s; SYSTEM_ERROR (1),
            the connection closes, or the response does not decode.
    """
    command = RemotingCommand(
        request.code, body=request.body if body is None else body, ext_fields={**request.ext, **fields}
    )
    name = f"<{group}> <{channel.client_id}>"
    try:
        answer = await channel.connection.invoke(command, CALL_CLIENT_SECONDS)
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
    """Return the response's body in the form that the sender of ``request`` reads.

    If request and response use the same kind of body, the bytes stay unchanged. A translation would lose
    fields that RewindMQ does not know, and tables in a form that only the client's own tools read
    (pyrocketmq's ``mqTable``).
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
        ResponseCode.SYSTEM_ERROR, f"consumer {name} sent a response that does not decode: {error.remark}"
    )
