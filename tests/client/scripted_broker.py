"""A name server and broker in one, for tests that force a response or count every request.

It does only what a client needs; tests replace single handlers. Tests that force no response use the real
broker and name server.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rewindmq import Producer
from rewindmq.protocol.body.group import GetConsumerListByGroupResponseBody
from rewindmq.protocol.body.heartbeat import HeartbeatData
from rewindmq.protocol.body.lock import LockBatchRequestBody, LockBatchResponseBody
from rewindmq.protocol.body.route import BrokerData, QueueData, TopicRouteData
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.client import GetConsumerListByGroupRequestHeader
from rewindmq.protocol.header.namesrv import GetRouteInfoRequestHeader
from rewindmq.protocol.header.offset import (
    GetMaxOffsetResponseHeader,
    QueryConsumerOffsetRequestHeader,
    QueryConsumerOffsetResponseHeader,
    SearchOffsetResponseHeader,
    UpdateConsumerOffsetRequestHeader,
)
from rewindmq.protocol.header.pull import PullMessageRequestHeader, PullMessageResponseHeader
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.protocol.remoting.server import RemotingServer
from rewindmq.race.sim import World
from tests.client.client_records import record

_HEADERS: dict[int, Any] = {
    RequestCode.GET_ROUTEINFO_BY_TOPIC: GetRouteInfoRequestHeader,
    RequestCode.QUERY_CONSUMER_OFFSET: QueryConsumerOffsetRequestHeader,
    RequestCode.UPDATE_CONSUMER_OFFSET: UpdateConsumerOffsetRequestHeader,
    RequestCode.PULL_MESSAGE: PullMessageRequestHeader,
    RequestCode.LITE_PULL_MESSAGE: PullMessageRequestHeader,
    RequestCode.GET_CONSUMER_LIST_BY_GROUP: GetConsumerListByGroupRequestHeader,
}


class ScriptedBroker:
    """Listens on its runtime's host, and records every request with its time.

    Attributes:
        topics: topic to number of queues.
        stored: queue id to stored offset, in every topic; a missing queue is answered QUERY_NOT_FOUND (22).
        max_offset: the response to GET_MAX_OFFSET (30).
        queue_messages: queue id to message bodies; a body's position is its offset.
        seen: (seconds, code, header) of each request.
    """

    def __init__(self, runtime: Runtime, topics: dict[str, int]) -> None:
        self.runtime = runtime
        self.topics = topics
        self.stored: dict[int, int] = {}
        self.max_offset = 0
        self.queue_messages: dict[int, Sequence[bytes]] = {}
        self.seen: list[tuple[float, int, Any]] = []
        self.connections: dict[str, Connection] = {}
        self.handlers: dict[int, Callable[[Connection, RemotingCommand], Any]] = {
            RequestCode.GET_ROUTEINFO_BY_TOPIC: self._route,
            RequestCode.HEART_BEAT: self._heartbeat,
            RequestCode.UNREGISTER_CLIENT: lambda connection, request: _ok(),
            RequestCode.GET_CONSUMER_LIST_BY_GROUP: self._consumer_ids,
            RequestCode.LOCK_BATCH_MQ: self._lock,
            RequestCode.UNLOCK_BATCH_MQ: lambda connection, request: _ok(),
            RequestCode.QUERY_CONSUMER_OFFSET: self._query_offset,
            RequestCode.UPDATE_CONSUMER_OFFSET: self._update_offset,
            RequestCode.GET_MAX_OFFSET: lambda connection, request: RemotingCommand(
                ResponseCode.SUCCESS, GetMaxOffsetResponseHeader(self.max_offset)
            ),
            RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: lambda connection, request: RemotingCommand(
                ResponseCode.SUCCESS, SearchOffsetResponseHeader(self.max_offset)
            ),
            RequestCode.CHECK_CLIENT_CONFIG: lambda connection, request: _ok(),
            RequestCode.PULL_MESSAGE: self._pull,
            RequestCode.LITE_PULL_MESSAGE: self._pull,
        }
        served = {
            *self.handlers,
            RequestCode.CONSUMER_SEND_MSG_BACK,
            RequestCode.SEND_BATCH_MESSAGE,
            RequestCode.SEND_MESSAGE_V2,
            RequestCode.QUERY_ASSIGNMENT,
            RequestCode.SET_MESSAGE_REQUEST_MODE,
            RequestCode.POP_MESSAGE,
            RequestCode.ACK_MESSAGE,
            RequestCode.BATCH_ACK_MESSAGE,
            RequestCode.CHANGE_MESSAGE_INVISIBLETIME,
        }
        self._server = RemotingServer(runtime, {code: self._recording(code) for code in served})

    @property
    def address(self) -> str:
        return f"{self._server.host}:{self._server.port}"

    async def start(self, host: str) -> None:
        await self._server.start(host, 0)

    async def close(self) -> None:
        await self._server.close()

    def times(self, code: int) -> list[float]:
        """Return when requests of this code arrived, to a tenth of a second."""
        return [round(at, 1) for at, seen, _ in self.seen if seen == code]

    def headers(self, code: int) -> list[Any]:
        return [header for _, seen, header in self.seen if seen == code]

    def _recording(self, code: int) -> Callable[[Connection, RemotingCommand], Any]:
        def handle(connection: Connection, request: RemotingCommand) -> Any:
            header_type = _HEADERS.get(code)
            header = request.decode_header(header_type) if header_type else request
            self.seen.append((self.runtime.clock.monotonic(), code, header))
            handler = self.handlers.get(code)
            if handler is None:
                return RemotingCommand(ResponseCode.REQUEST_CODE_NOT_SUPPORTED)
            return handler(connection, request)

        return handle

    def _route(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        topic = request.decode_header(GetRouteInfoRequestHeader).topic
        queues = self.topics.get(topic)
        if queues is None:
            return RemotingCommand(ResponseCode.TOPIC_NOT_EXIST)
        data = QueueData("broker-a", queues, queues, 6)
        broker = BrokerData("C", "broker-a", {0: self.address})
        return RemotingCommand(ResponseCode.SUCCESS, None, TopicRouteData([data], [broker]))

    def _heartbeat(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        self.connections[decode_body(request, HeartbeatData).client_id] = connection
        return _ok()

    def _consumer_ids(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        body = GetConsumerListByGroupResponseBody(list(self.connections))
        return RemotingCommand(ResponseCode.SUCCESS, None, body)

    def _lock(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        asked = decode_body(request, LockBatchRequestBody)
        return RemotingCommand(ResponseCode.SUCCESS, body=LockBatchResponseBody(asked.mq_set))

    def _query_offset(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        queue_id = request.decode_header(QueryConsumerOffsetRequestHeader).queue_id
        if queue_id not in self.stored:
            return RemotingCommand(ResponseCode.QUERY_NOT_FOUND)
        header = QueryConsumerOffsetResponseHeader(self.stored[queue_id])
        return RemotingCommand(ResponseCode.SUCCESS, header)

    def _update_offset(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        header = request.decode_header(UpdateConsumerOffsetRequestHeader)
        self.stored[header.queue_id] = header.commit_offset
        return _ok()

    def _pull(self, connection: Connection, request: RemotingCommand) -> RemotingCommand | None:
        """Return the messages, or PULL_NOT_FOUND (19) after the requested suspension."""
        header = request.decode_header(PullMessageRequestHeader)
        bodies = (
            self.queue_messages.get(header.queue_id, ()) if not header.topic.startswith("%RETRY%") else ()
        )
        start, end = header.queue_offset, min(len(bodies), header.queue_offset + header.max_msg_nums)
        if start < end:
            stream = b"".join(
                record(offset, bodies[offset], topic=header.topic, queue_id=header.queue_id)
                for offset in range(start, end)
            )
            return pull_answer(ResponseCode.SUCCESS, end, stream)
        self.runtime.timers.call_later(
            header.suspend_timeout_millis / 1000,
            connection.reply,
            request,
            pull_answer(ResponseCode.PULL_NOT_FOUND, start),
        )
        return None


def play_scripted(scene: Any, profile: Profile = Profile.V49, **options: Any) -> None:
    """Run ``scene(broker, producer)`` under virtual time: a broker with topic T, and a producer."""
    world = World()

    async def main() -> None:
        broker = ScriptedBroker(world.runtime("10.0.0.9"), {"T": 2})
        await broker.start("10.0.0.9")
        runtime: Runtime = world.runtime("10.0.0.1")
        try:
            async with Producer(
                "P", broker.address, runtime=runtime, profile=profile, instance_name="p1", **options
            ) as producer:
                await scene(broker, producer)
        finally:
            await broker.close()

    world.run(main())


def pull_answer(code: int, next_offset: int, stream: bytes = b"") -> RemotingCommand:
    return RemotingCommand(code, PullMessageResponseHeader(0, next_offset, 0, next_offset), stream)


def _ok() -> RemotingCommand:
    return RemotingCommand(ResponseCode.SUCCESS)
