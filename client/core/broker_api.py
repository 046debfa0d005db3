"""The requests a client sends to brokers and name servers, one function each.

Every function raises ``RemotingError`` when no answer came and ``ResponseError`` when the answer is a
refusal; both are ``RewindMQError``. Timeouts are RocketMQ's (docs/spec/client.md C.3).
"""

from __future__ import annotations

import asyncio
from typing import TypeVar

from rewindmq.protocol.body.assignment import (
    MessageQueueAssignment,
    MessageRequestMode,
    QueryAssignmentRequestBody,
    QueryAssignmentResponseBody,
)
from rewindmq.protocol.body.group import GetConsumerListByGroupResponseBody, SetMessageRequestModeRequestBody
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
ASSIGNMENT_TIMEOUT = 3.0

HeaderT = TypeVar("HeaderT", bound=CommandHeader)


class BrokerApi:
    """Requests over one ``RemotingClient``.

    Args:
        namesrv_addrs: tried in turn, starting with the one that answered last (docs/spec/protocol.md 1.3).
        version: the MQVersion ordinal announced in every request.
        timeout: seconds for an answer to HEART_BEAT (34), UNREGISTER_CLIENT (35), GET_CONSUMER_LIST_BY_GROUP
            (38), CHECK_CLIENT_CONFIG (46) and GET_ROUTEINFO_BY_TOPIC (105): ``mqClientApiTimeout``.
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
        """Return a request that announces this client's version."""
        return RemotingCommand(code, header, body, version=self.version)

    async def invoke_name_server(self, command: RemotingCommand, timeout: float) -> RemotingCommand:
        """Ask the chosen name server, and the other name servers in turn if it does not answer.

        Raises:
            RemotingError: no name server answered; the error is that of the last one.
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
        """Return a topic's route (GET_ROUTEINFO_BY_TOPIC, 105).

        Raises:
            ResponseError: TOPIC_NOT_EXIST (17) if the topic has no route.
        """
        command = self.command(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoRequestHeader(topic))
        response = await self.invoke_name_server(command, self._timeout)
        return decode_body(response.require_success(), TopicRouteData)

    @property
    def time_scale(self) -> str:
        """This client's time scale, as heartbeats carry it."""
        return str(float(self.remoting.runtime.clock.scale))

    async def heartbeat(self, address: str, data: HeartbeatData) -> str | None:
        """Send HEART_BEAT (34) and return the broker's time scale; None from RocketMQ's broker."""
        response = await self.remoting.invoke(address, self.heartbeat_command(data), self._timeout)
        scale = response.require_success().ext.get(TIME_SCALE)
        return None if scale is None else str(scale)

    def heartbeat_command(self, data: HeartbeatData) -> RemotingCommand:
        """Return a HEART_BEAT (34) request."""
        command = self.command(RequestCode.HEART_BEAT, None, data)
        command.set_ext(TIME_SCALE, self.time_scale)
        return command

    async def check_client_config(
        self, address: str, client_id: str, group: str, subscription: SubscriptionData
    ) -> None:
        """Ask whether the broker can filter as a subscription asks (CHECK_CLIENT_CONFIG, 46)."""
        body = CheckClientRequestBody(client_id, group, subscription)
        command = self.command(RequestCode.CHECK_CLIENT_CONFIG, None, body)
        (await self.remoting.invoke(address, command, self._timeout)).require_success()

    async def unregister_client(
        self, address: str, client_id: str, producer_group: str | None, consumer_group: str | None
    ) -> None:
        """Remove this client's groups from a broker (UNREGISTER_CLIENT, 35)."""
        header = UnregisterClientRequestHeader(client_id, producer_group, consumer_group)
        command = self.command(RequestCode.UNREGISTER_CLIENT, header)
        (await self.remoting.invoke(address, command, self._timeout)).require_success()

    async def consumer_ids(self, address: str, group: str) -> list[str]:
        """Return a group's client ids in no particular order (GET_CONSUMER_LIST_BY_GROUP, 38)."""
        command = self.command(
            RequestCode.GET_CONSUMER_LIST_BY_GROUP, GetConsumerListByGroupRequestHeader(group)
        )
        response = (await self.remoting.invoke(address, command, self._timeout)).require_success()
        return decode_body(response, GetConsumerListByGroupResponseBody).consumer_id_list

    async def query_assignment(
        self, address: str, query: QueryAssignmentRequestBody
    ) -> list[MessageQueueAssignment] | None:
        """Return the queues that the broker assigns (QUERY_ASSIGNMENT, 400); None: it cannot tell."""
        command = self.command(RequestCode.QUERY_ASSIGNMENT, None, query)
        response = (await self.remoting.invoke(address, command, ASSIGNMENT_TIMEOUT)).require_success()
        return decode_body(response, QueryAssignmentResponseBody).message_queue_assignments

    async def set_request_mode(
        self, address: str, topic: str, group: str, mode: MessageRequestMode, share_queue_num: int
    ) -> None:
        """Set whether a group pulls or pops a topic (SET_MESSAGE_REQUEST_MODE, 401).

        Args:
            share_queue_num: so many further consumers pop a consumer's queues, too; 0: all of them.
        """
        body = SetMessageRequestModeRequestBody(topic, group, mode, share_queue_num)
        command = self.command(RequestCode.SET_MESSAGE_REQUEST_MODE, None, body)
        (await self.remoting.invoke(address, command, self._timeout)).require_success()

    async def consumer_offset(
        self, address: str, group: str, queue: MessageQueue
    ) -> QueryConsumerOffsetResponseHeader:
        """Return the stored offset (QUERY_CONSUMER_OFFSET, 14).

        The answer carries an epoch if the queue was reset in fenced mode.
        """
        header = QueryConsumerOffsetRequestHeader(group, queue.topic, queue.queue_id)
        command = self.command(RequestCode.QUERY_CONSUMER_OFFSET, header)
        return await self._ask(address, command, QueryConsumerOffsetResponseHeader)

    async def update_consumer_offset(
        self, address: str, group: str, queue: MessageQueue, offset: int
    ) -> None:
        """Send UPDATE_CONSUMER_OFFSET (15) oneway: the broker does not answer."""
        command = self._commit_command(group, queue, offset)
        await self.remoting.invoke_oneway(address, command, OFFSET_TIMEOUT)

    async def update_consumer_offset_sync(
        self, address: str, group: str, queue: MessageQueue, offset: int
    ) -> None:
        """Send UPDATE_CONSUMER_OFFSET (15) and wait for the answer, as the admin client does."""
        command = self._commit_command(group, queue, offset)
        (await self.remoting.invoke(address, command, OFFSET_TIMEOUT)).require_success()

    def commit(
        self, address: str, group: str, queue: MessageQueue, offset: int, epoch: int
    ) -> asyncio.Future[RemotingCommand]:
        """Send UPDATE_CONSUMER_OFFSET (15) with the epoch of the deliveries.

        The future returns the broker's answer, even if its code is ``OFFSET_FENCED``.
        """
        command = self._commit_command(group, queue, offset, epoch)
        return self.remoting.invoke(address, command, OFFSET_TIMEOUT)

    async def max_offset(self, address: str, queue: MessageQueue) -> int:
        """Return a queue's max offset (GET_MAX_OFFSET, 30)."""
        command = self.command(
            RequestCode.GET_MAX_OFFSET, GetMaxOffsetRequestHeader(queue.topic, queue.queue_id)
        )
        return (await self._ask(address, command, GetMaxOffsetResponseHeader)).offset

    async def min_offset(self, address: str, queue: MessageQueue) -> int:
        """Return a queue's min offset (GET_MIN_OFFSET, 31)."""
        command = self.command(
            RequestCode.GET_MIN_OFFSET, GetMinOffsetRequestHeader(queue.topic, queue.queue_id)
        )
        return (await self._ask(address, command, GetMinOffsetResponseHeader)).offset

    async def search_offset(
        self, address: str, queue: MessageQueue, timestamp: int, boundary: str | None = None
    ) -> int:
        """Return a queue's offset at a time (SEARCH_OFFSET_BY_TIMESTAMP, 29).

        Brokers of 5.1.1 and later understand ``boundary`` LOWER or UPPER.
        """
        header = SearchOffsetRequestHeader(queue.topic, queue.queue_id, timestamp, boundary)
        command = self.command(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header)
        return (await self._ask(address, command, SearchOffsetResponseHeader)).offset

    async def send_message_back(self, address: str, header: ConsumerSendMsgBackRequestHeader) -> None:
        """Send a message back for a later retry (CONSUMER_SEND_MSG_BACK, 36)."""
        command = self.command(RequestCode.CONSUMER_SEND_MSG_BACK, header)
        (await self.remoting.invoke(address, command, SEND_BACK_TIMEOUT)).require_success()

    async def lock_queues(
        self, address: str, group: str, client_id: str, queues: set[MessageQueue]
    ) -> set[MessageQueue]:
        """Lock queues and return those that the broker locked for this client (LOCK_BATCH_MQ, 41)."""
        command = self.command(
            RequestCode.LOCK_BATCH_MQ, None, LockBatchRequestBody(group, client_id, queues)
        )
        response = (await self.remoting.invoke(address, command, LOCK_TIMEOUT)).require_success()
        return decode_body(response, LockBatchResponseBody).lock_ok_mq_set

    async def unlock_queues(
        self, address: str, group: str, client_id: str, queues: set[MessageQueue]
    ) -> None:
        """Unlock queues and wait for the answer (UNLOCK_BATCH_MQ, 42)."""
        command = self.command(
            RequestCode.UNLOCK_BATCH_MQ, None, UnlockBatchRequestBody(group, client_id, queues)
        )
        (await self.remoting.invoke(address, command, LOCK_TIMEOUT)).require_success()

    async def unlock_queues_oneway(
        self, address: str, group: str, client_id: str, queues: set[MessageQueue]
    ) -> None:
        """Unlock queues with a oneway request (UNLOCK_BATCH_MQ, 42)."""
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
