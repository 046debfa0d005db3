"""The requests a client sends to brokers and name servers, one function each.

Every function raises ``RemotingError`` when no answer came and ``ResponseError`` when the answer is a
refusal; both are ``RewindMQError``. Timeouts are RocketMQ's (docs/spec/client.md C.3).
"""

from __future__ import annotations

import asyncio
from typing import TypeVar

from rewindmq.protocol.body.group import GetConsumerListByGroupResponseBody
from rewindmq.protocol.body.heartbeat import CheckClientRequestBody, HeartbeatData, SubscriptionData
from rewindmq.protocol.body.lock import (
    LockBatchRequestBody,
    LockBatchResponseBody,
    UnlockBatchRequestBody,
)
from rewindmq.protocol.body.route import TopicRouteData
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import Body, CommandHeader, RemotingCommand
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.header.client import (
    TIME_SCALE,
    GetConsumerListByGroupRequestHeader,
    UnregisterClientRequestHeader,
)
from rewindmq.protocol.header.message import ConsumerSendMsgBackRequestHeader
from rewindmq.protocol.header.namesrv import GetRouteInfoRequestHeader
from rewindmq.protocol.header.offset import (
    GetMaxOffsetRequestHeader,
    GetMaxOffsetResponseHeader,
    GetMinOffsetRequestHeader,
    GetMinOffsetResponseHeader,
    QueryConsumerOffsetRequestHeader,
    QueryConsumerOffsetResponseHeader,
    SearchOffsetRequestHeader,
    SearchOffsetResponseHeader,
    UpdateConsumerOffsetRequestHeader,
)
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.remoting.client import RemotingClient

OFFSET_TIMEOUT = 5.0
SEND_BACK_TIMEOUT = 5.0
LOCK_TIMEOUT = 1.0

HeaderT = TypeVar("HeaderT", bound=CommandHeader)


class BrokerApi:
    """Requests over one ``RemotingClient``.

    Args:
        namesrv_addrs: tried in turn, starting with the one that answered last (docs/spec/protocol.md 1.3).
        version: the MQVersion ordinal announced in every request.
        timeout: seconds for an answer to 34, 35, 38, 46 and 105 (``mqClientApiTimeout``).
    """

    def __init__(
        self, remoting: RemotingClient, namesrv_addrs: tuple[str, ...], version: int, timeout: float
    ) -> None:
        self.remoting = remoting
        self.version = version
        self._timeout = timeout
        self._namesrv_addrs = namesrv_addrs
        self._chosen = 0

    def command(self, code: int, header: CommandHeader | None = None, body: Body = None) -> RemotingCommand:
        """A request that announces this client's version."""
        return RemotingCommand(code, header, body, version=self.version)

    async def invoke_name_server(self, command: RemotingCommand, timeout: float) -> RemotingCommand:
        """Ask the chosen name server, and when it does not answer the others.

        Raises:
            RemotingError: none of them answered; the last one's error.
        """
        count = len(self._namesrv_addrs)
        for attempt in range(count):
            position = (self._chosen + attempt) % count
            try:
                response = await self.remoting.invoke(self._namesrv_addrs[position], command, timeout)
            except RewindMQError:
                if attempt == count - 1:
                    raise
            else:
                self._chosen = position
                return response
        raise AssertionError("a client without name servers cannot be built")

    async def topic_route(self, topic: str) -> TopicRouteData:
        """Code 105. Code 17 in the raised ``ResponseError`` means the topic has no route."""
        command = self.command(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoRequestHeader(topic))
        response = await self.invoke_name_server(command, self._timeout)
        return decode_body(response.require_success(), TopicRouteData)

    @property
    def time_scale(self) -> str:
        """This client's, as heartbeats carry it."""
        return str(float(self.remoting.runtime.clock.scale))

    async def heartbeat(self, address: str, data: HeartbeatData) -> str | None:
        """HEART_BEAT (34); returns the broker's time scale, None if the broker is RocketMQ's."""
        response = await self.remoting.invoke(address, self.heartbeat_command(data), self._timeout)
        scale = response.require_success().ext.get(TIME_SCALE)
        return None if scale is None else str(scale)

    def heartbeat_command(self, data: HeartbeatData) -> RemotingCommand:
        """HEART_BEAT (34)."""
        command = self.command(RequestCode.HEART_BEAT, None, data)
        command.set_ext(TIME_SCALE, self.time_scale)
        return command

    async def check_client_config(
        self, address: str, client_id: str, group: str, subscription: SubscriptionData
    ) -> None:
        """Code 46: whether the broker can filter as a subscription asks."""
        body = CheckClientRequestBody(client_id, group, subscription)
        command = self.command(RequestCode.CHECK_CLIENT_CONFIG, None, body)
        (await self.remoting.invoke(address, command, self._timeout)).require_success()

    async def unregister_client(
        self, address: str, client_id: str, producer_group: str | None, consumer_group: str | None
    ) -> None:
        """Code 35."""
        header = UnregisterClientRequestHeader(client_id, producer_group, consumer_group)
        command = self.command(RequestCode.UNREGISTER_CLIENT, header)
        (await self.remoting.invoke(address, command, self._timeout)).require_success()

    async def consumer_ids(self, address: str, group: str) -> list[str]:
        """Code 38: the client ids of a group, in no particular order."""
        command = self.command(
            RequestCode.GET_CONSUMER_LIST_BY_GROUP, GetConsumerListByGroupRequestHeader(group)
        )
        response = (await self.remoting.invoke(address, command, self._timeout)).require_success()
        return decode_body(response, GetConsumerListByGroupResponseBody).consumer_id_list

    async def consumer_offset(
        self, address: str, group: str, queue: MessageQueue
    ) -> QueryConsumerOffsetResponseHeader:
        """Code 14: the stored offset, and the epoch where the queue was reset in fenced mode."""
        header = QueryConsumerOffsetRequestHeader(group, queue.topic, queue.queue_id)
        command = self.command(RequestCode.QUERY_CONSUMER_OFFSET, header)
        return await self._ask(address, command, QueryConsumerOffsetResponseHeader)

    async def update_consumer_offset(
        self, address: str, group: str, queue: MessageQueue, offset: int
    ) -> None:
        """Code 15 as a oneway request: nobody learns whether it arrived."""
        command = self._commit_command(group, queue, offset)
        await self.remoting.invoke_oneway(address, command, OFFSET_TIMEOUT)

    async def update_consumer_offset_sync(
        self, address: str, group: str, queue: MessageQueue, offset: int
    ) -> None:
        """Code 15, waiting for the answer, as administrators do."""
        command = self._commit_command(group, queue, offset)
        (await self.remoting.invoke(address, command, OFFSET_TIMEOUT)).require_success()

    def commit(
        self, address: str, group: str, queue: MessageQueue, offset: int, epoch: int
    ) -> asyncio.Future[RemotingCommand]:
        """Code 15 with the epoch of the deliveries; the future gives the answer, ``OFFSET_FENCED`` too."""
        command = self._commit_command(group, queue, offset, epoch)
        return self.remoting.invoke(address, command, OFFSET_TIMEOUT)

    async def max_offset(self, address: str, queue: MessageQueue) -> int:
        """Code 30."""
        command = self.command(
            RequestCode.GET_MAX_OFFSET, GetMaxOffsetRequestHeader(queue.topic, queue.queue_id)
        )
        return (await self._ask(address, command, GetMaxOffsetResponseHeader)).offset

    async def min_offset(self, address: str, queue: MessageQueue) -> int:
        """Code 31."""
        command = self.command(
            RequestCode.GET_MIN_OFFSET, GetMinOffsetRequestHeader(queue.topic, queue.queue_id)
        )
        return (await self._ask(address, command, GetMinOffsetResponseHeader)).offset

    async def search_offset(
        self, address: str, queue: MessageQueue, timestamp: int, boundary: str | None = None
    ) -> int:
        """Code 29; ``boundary`` LOWER or UPPER is understood by brokers of 5.1.1 and later."""
        header = SearchOffsetRequestHeader(queue.topic, queue.queue_id, timestamp, boundary)
        command = self.command(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header)
        return (await self._ask(address, command, SearchOffsetResponseHeader)).offset

    async def send_message_back(self, address: str, header: ConsumerSendMsgBackRequestHeader) -> None:
        """Code 36."""
        command = self.command(RequestCode.CONSUMER_SEND_MSG_BACK, header)
        (await self.remoting.invoke(address, command, SEND_BACK_TIMEOUT)).require_success()

    async def lock_queues(
        self, address: str, group: str, client_id: str, queues: set[MessageQueue]
    ) -> set[MessageQueue]:
        """Code 41: those of ``queues`` that this client holds now."""
        command = self.command(
            RequestCode.LOCK_BATCH_MQ, None, LockBatchRequestBody(group, client_id, queues)
        )
        response = (await self.remoting.invoke(address, command, LOCK_TIMEOUT)).require_success()
        return decode_body(response, LockBatchResponseBody).lock_ok_mq_set

    async def unlock_queues(
        self, address: str, group: str, client_id: str, queues: set[MessageQueue]
    ) -> None:
        """Code 42, waiting for the answer."""
        command = self.command(
            RequestCode.UNLOCK_BATCH_MQ, None, UnlockBatchRequestBody(group, client_id, queues)
        )
        (await self.remoting.invoke(address, command, LOCK_TIMEOUT)).require_success()

    async def unlock_queues_oneway(
        self, address: str, group: str, client_id: str, queues: set[MessageQueue]
    ) -> None:
        """Code 42 as a oneway request."""
        command = self.command(
            RequestCode.UNLOCK_BATCH_MQ, None, UnlockBatchRequestBody(group, client_id, queues)
        )
        await self.remoting.invoke_oneway(address, command, LOCK_TIMEOUT)

    def _commit_command(
        self, group: str, queue: MessageQueue, offset: int, epoch: int | None = None
    ) -> RemotingCommand:
        header = UpdateConsumerOffsetRequestHeader(group, queue.topic, queue.queue_id, offset, epoch)
        return self.command(RequestCode.UPDATE_CONSUMER_OFFSET, header)

    async def _ask(self, address: str, command: RemotingCommand, header_type: type[HeaderT]) -> HeaderT:
        response = await self.remoting.invoke(address, command, OFFSET_TIMEOUT)
        return response.require_success().decode_header(header_type)
