"""Looks up messages by id, key or queue offset, and the offsets of queues."""

from __future__ import annotations

from typing import Final

from rewindmq.client.admin.message_trace import TraceLine, trace_lines
from rewindmq.client.admin.remote import TIMEOUT, AdminPart, AdminRemote
from rewindmq.client.consume.pull_result import PullResult, decode_pull_response
from rewindmq.client.msg_trace.records import DEFAULT_TRACE_TOPIC
from rewindmq.protocol.body.heartbeat import EXPRESSION_TAG
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.errors import ResponseError
from rewindmq.protocol.header.message import QueryMessageRequestHeader, ViewMessageRequestHeader
from rewindmq.protocol.header.pop import PeekMessageRequestHeader
from rewindmq.protocol.header.pull import PullMessageRequestHeader
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message.message import format_host
from rewindmq.protocol.message.message_id import parse_offset_message_id
from rewindmq.protocol.message.record import decode_record, decode_records, decode_stream
from rewindmq.protocol.message.sysflag import PullSysFlag
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.subscription import SUB_ALL, build_subscription_data

# Values of DefaultMQAdminExt: the most messages that a broker returns, the end of an interval without an
# end, and the timeout in seconds.
MAX_COUNT: Final = 64
END_OF_TIME: Final = 0x7FFF_FFFF_FFFF_FFFF
_QUERY_TIMEOUT: Final = 15.0
TOOLS_CONSUMER_GROUP: Final = "TOOLS_CONSUMER"
_KEY_SEPARATOR: Final = " "


class MessageAdmin(AdminPart):
    """Looks up messages by id, key or queue offset, and the offsets of queues."""

    async def view_message(self, message_id: str) -> MessageExt:
        """Return the message with an offset id.

        The broker whose address the id contains gets VIEW_MESSAGE_BY_ID (33).

        Raises:
            ResponseError: the text is not an offset id, or no message starts at its commit log offset.
        """
        host, commit_log_offset = parse_offset_message_id(message_id)
        command = self._remote.command(
            RequestCode.VIEW_MESSAGE_BY_ID, ViewMessageRequestHeader(offset=commit_log_offset)
        )
        answer = await self._remote.ask_broker(format_host(host), command)
        if not isinstance(answer.body, bytes):
            raise ResponseError(ResponseCode.NO_MESSAGE, f"the response for message {message_id} is empty")
        return decode_record(answer.body)

    async def message_at(self, queue: MessageQueue, offset: int) -> MessageExt:
        """Return the message at one offset of a queue; see ``pull_messages``.

        Raises:
            ClientError: the topic's route does not name the broker.
            ResponseError: NO_MESSAGE (208) if the queue has no message at that offset; or the broker refused.
        """
        result = await self.pull_messages(queue, offset, 1)
        if not result.messages or result.messages[0].queue_offset != offset:
            raise ResponseError(
                ResponseCode.NO_MESSAGE,
                f"no message at offset {offset}: the queue holds [{result.min_offset}, {result.max_offset})",
            )
        return result.messages[0]

    async def pull_messages(self, queue: MessageQueue, offset: int, max_nums: int) -> PullResult:
        """Return messages of a queue from an offset on: PULL_MESSAGE (11) as mqadmin's group TOOLS_CONSUMER.

        The broker does not wait for messages, and stores nothing about the pull.

        Args:
            max_nums: at least 1; brokers return at most 32 messages or 256 KiB.

        Raises:
            ClientError: the topic's route does not name the broker.
            ResponseError: the broker refused.
        """
        header = PullMessageRequestHeader(
            consumer_group=TOOLS_CONSUMER_GROUP,
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=offset,
            max_msg_nums=max_nums,
            sys_flag=int(PullSysFlag.SUBSCRIPTION),
            commit_offset=0,
            suspend_timeout_millis=0,
            sub_version=0,
            subscription=SUB_ALL,
            expression_type=EXPRESSION_TAG,
        )
        address = await self._remote.address_of(queue)
        answer = await self._remote.api.remoting.invoke(
            address, self._remote.command(RequestCode.PULL_MESSAGE, header), TIMEOUT
        )
        return decode_pull_response(answer, queue, offset, build_subscription_data(queue.topic, SUB_ALL))

    async def peek_messages(self, topic: str, group: str, max_nums: int) -> list[MessageExt]:
        """Return messages that a group would pop next: PEEK_MESSAGE (200052) to each broker of the topic.

        No message is popped, and no offset moves.

        Args:
            max_nums: from each broker, 1 to 32.

        Raises:
            ResponseError: TOPIC_NOT_EXIST (17), there is no such topic; SUBSCRIPTION_GROUP_NOT_EXIST (26),
                there is no such group; REQUEST_CODE_NOT_SUPPORTED (3) from brokers before 5.0.
        """
        header = PeekMessageRequestHeader(group, topic, -1, max_nums)
        found: list[MessageExt] = []
        for name, address in await self._remote.brokers_of(topic):
            command = self._remote.command(RequestCode.PEEK_MESSAGE, header)
            answer = await self._remote.api.remoting.invoke(address, command, TIMEOUT)
            if answer.code != ResponseCode.PULL_NOT_FOUND:
                body = answer.require_success().body
                found += decode_stream(body if isinstance(body, bytes) else b"", name)[0]
        return found

    async def first_message_offset(self, queue: MessageQueue, start: int, end: int) -> int:
        """Return the first offset from ``start`` to ``end`` whose message still exists; ``end`` if none does.

        Retention deletes the oldest messages first. Brokers before 5.x keep the minimum offset of a queue
        whose messages have all expired (docs/spec/broker.md B.11), so it need not have a message.

        Raises:
            ResponseError: the broker refused the pulls, as for a queue that is not read.
        """
        if start >= end or (await self.pull_messages(queue, start, 1)).messages:
            return start
        gone = start
        while end - gone > 1:
            middle = (gone + end) // 2
            if (await self.pull_messages(queue, middle, 1)).messages:
                end = middle
            else:
                gone = middle
        return end

    async def query_message(
        self,
        topic: str,
        key: str,
        max_count: int = MAX_COUNT,
        begin: int = 0,
        end: int = END_OF_TIME,
    ) -> list[MessageExt]:
        """Return the messages stored in [begin, end] ms with ``key`` among their KEYS, the oldest first.

        Each broker returns its newest ``max_count`` messages, 64 at most.

        Raises:
            ResponseError: TOPIC_NOT_EXIST (17); NO_MESSAGE (208) if no message matches.
        """
        return await query_message(self._remote, topic, key, max_count, begin, end, is_unique_key=False)

    async def query_message_by_unique_key(self, topic: str, message_id: str) -> list[MessageExt]:
        """Return the messages with the unique id that a producer gave, the oldest first.

        Several messages share an id if the producer sent again, or the message was stored again for a retry.

        Raises:
            ResponseError: TOPIC_NOT_EXIST (17); NO_MESSAGE (208) if no message matches.
        """
        return await query_message(
            self._remote, topic, message_id, MAX_COUNT, 0, END_OF_TIME, is_unique_key=True
        )

    async def query_message_at(
        self, broker_name: str, address: str, topic: str, key: str, *, is_unique_key: bool = False
    ) -> list[MessageExt]:
        """Return one broker's messages with a key, or with a producer's unique id: QUERY_MESSAGE (12).

        Returns:
            At most 64, in the order of the broker's response.

        Raises:
            ResponseError: the broker refused.
            RemotingError: the broker did not answer.
        """
        header = QueryMessageRequestHeader(topic, key, MAX_COUNT, 0, END_OF_TIME, is_unique_key)
        return await _query_at(self._remote, broker_name, address, header)

    async def query_message_trace(self, message_id: str, topic: str = DEFAULT_TRACE_TOPIC) -> list[TraceLine]:
        """Return the traced sends, listener calls and transaction ends of a message, the oldest first.

        Raises:
            ResponseError: TOPIC_NOT_EXIST (17) if there is no trace topic; NO_MESSAGE (208) if it has no
                trace of the message.
        """
        return trace_lines(await self.query_message(topic, message_id), message_id)

    async def search_offset(self, queue: MessageQueue, timestamp: int) -> int:
        """Return the queue's offset at ``timestamp`` ms."""
        return await self._remote.api.search_offset(await self._remote.address_of(queue), queue, timestamp)

    async def max_offset(self, queue: MessageQueue) -> int:
        """Return the queue's maximum offset: one past its last message."""
        return await self._remote.api.max_offset(await self._remote.address_of(queue), queue)

    async def min_offset(self, queue: MessageQueue) -> int:
        """Return the queue's minimum offset: its first retained message."""
        return await self._remote.api.min_offset(await self._remote.address_of(queue), queue)


async def query_message(
    remote: AdminRemote, topic: str, key: str, max_count: int, begin: int, end: int, *, is_unique_key: bool
) -> list[MessageExt]:
    """Send QUERY_MESSAGE (12) to every broker of the topic, and return the messages, the oldest first.

    Raises:
        ResponseError: TOPIC_NOT_EXIST (17); NO_MESSAGE (208) if no broker has a matching message.
    """
    header = QueryMessageRequestHeader(
        topic=topic,
        key=key,
        max_num=max_count,
        begin_timestamp=begin,
        end_timestamp=end,
        unique_key_query=is_unique_key,
    )
    found: list[MessageExt] = []
    for name, address in await remote.brokers_of(topic):
        found += await _query_at(remote, name, address, header)
    if not found:
        raise ResponseError(ResponseCode.NO_MESSAGE, "query message by key finished, but no message.")
    return sorted(found, key=lambda message: message.store_timestamp)


async def _query_at(
    remote: AdminRemote, name: str, address: str, header: QueryMessageRequestHeader
) -> list[MessageExt]:
    """Return what one broker has.

    Brokers compare only hashes of topic and key. Messages with another topic or key of the same hash are
    removed here, as 4.9.3 ``MQAdminImpl#queryMessage`` does; that compares no topic for a unique id.
    """
    command = remote.command(RequestCode.QUERY_MESSAGE, header)
    try:
        answer = await remote.ask_broker(address, command, _QUERY_TIMEOUT)
    except ResponseError as refusal:
        if refusal.code != ResponseCode.QUERY_NOT_FOUND:
            raise
        return []
    if not isinstance(answer.body, bytes):
        return []
    records = decode_records(answer.body, name)
    return [record for record in records if record.topic == header.topic and _has_key(record, header)]


def _has_key(message: MessageExt, header: QueryMessageRequestHeader) -> bool:
    if header.unique_key_query:
        return message.msg_id == header.key
    return header.key in (message.keys or "").split(_KEY_SEPARATOR)
