"""Requests to a broker, as a client's or an administrator's connection makes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rewindmq.protocol.body.heartbeat import ConsumerData, HeartbeatData, MessageModel, ProducerData
from rewindmq.protocol.body.offset_table import ResetOffsetBody
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import CommandHeader, RemotingCommand
from rewindmq.protocol.header.admin import CreateTopicRequestHeader
from rewindmq.protocol.header.offset import (
    QueryConsumerOffsetRequestHeader,
    QueryConsumerOffsetResponseHeader,
    SearchOffsetRequestHeader,
    UpdateConsumerOffsetRequestHeader,
)
from rewindmq.protocol.header.pull import PullMessageRequestHeader, PullMessageResponseHeader
from rewindmq.protocol.header.reset import ResetOffsetRequestHeader
from rewindmq.protocol.header.send import SendMessageRequestHeaderV2
from rewindmq.protocol.message.properties import format_properties
from rewindmq.protocol.message.sysflag import PullSysFlag
from rewindmq.protocol.subscription import build_subscription_data
from tests.support.asking import Asking


class BrokerRequests(Asking):
    """What a ``Peer`` asks a broker for; topic T and group G unless said otherwise."""

    client_id: str

    async def send(
        self,
        topic: str = "T",
        body: bytes = b"hello",
        *,
        queue_id: int = 0,
        properties: str | dict[str, str] = "",
        code: int = RequestCode.SEND_MESSAGE_V2,
        **fields: Any,
    ) -> RemotingCommand:
        text = properties if isinstance(properties, str) else format_properties(properties)
        defaults: dict[str, Any] = {
            "producer_group": "PG",
            "default_topic": "TBW102",
            "default_topic_queue_nums": 4,
            "sys_flag": 0,
            "born_timestamp": 1,
            "flag": 0,
        }
        header = SendMessageRequestHeaderV2(
            topic=topic, queue_id=queue_id, properties=text, **{**defaults, **fields}
        )
        return await self.ask(code, header, body)

    async def fill(self, count: int, topic: str = "T", queue_id: int = 0, body: bytes = b"x") -> None:
        for _ in range(count):
            (await self.send(topic, body, queue_id=queue_id)).require_success()

    async def create_topic(self, topic: str = "T", write: int = 4, read: int = 4, perm: int = 6) -> None:
        header = CreateTopicRequestHeader(topic, "TBW102", read, write, perm, "SINGLE_TAG")
        (await self.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, header)).require_success()

    async def heartbeat(
        self,
        group: str = "G",
        topics: Sequence[str] = ("T",),
        *,
        model: MessageModel = MessageModel.CLUSTERING,
        expression: str = "*",
        sub_version: int = 1,
        producers: Sequence[str] = (),
    ) -> RemotingCommand:
        subscriptions = [
            build_subscription_data(topic, expression, sub_version=sub_version) for topic in topics
        ]
        data = HeartbeatData(
            self.client_id,
            [ProducerData(name) for name in producers],
            [ConsumerData(group, message_model=model, subscription_data_set=subscriptions)] if group else [],
        )
        return await self.ask(RequestCode.HEART_BEAT, body=data)

    async def pull(
        self,
        offset: int,
        topic: str = "T",
        *,
        queue_id: int = 0,
        group: str = "G",
        hold_ms: int = 0,
        commit: int | None = None,
        count: int = 32,
        subscription: str | None = "*",
        expression_type: str | None = None,
        sub_version: int = 0,
        epoch: int | None = None,
    ) -> RemotingCommand:
        flags = PullSysFlag.SUSPEND if hold_ms else PullSysFlag(0)
        if commit is not None:
            flags |= PullSysFlag.COMMIT_OFFSET
        if subscription is not None:
            flags |= PullSysFlag.SUBSCRIPTION
        header = PullMessageRequestHeader(
            group,
            topic,
            queue_id,
            offset,
            count,
            int(flags),
            commit or 0,
            hold_ms,
            sub_version,
            subscription,
            expression_type,
            epoch=epoch,
        )
        return await self.ask(RequestCode.PULL_MESSAGE, header)

    async def status(self, offset: int, **options: Any) -> tuple[int, str | None, int]:
        """Code, remark and next offset of a pull."""
        response = await self.pull(offset, **options)
        header = response.decode_header(PullMessageResponseHeader)
        return response.code, response.remark, header.next_begin_offset

    async def commit(
        self, offset: int, topic: str = "T", queue_id: int = 0, group: str = "G", epoch: int | None = None
    ) -> RemotingCommand:
        header = UpdateConsumerOffsetRequestHeader(group, topic, queue_id, offset, epoch)
        return await self.ask(RequestCode.UPDATE_CONSUMER_OFFSET, header)

    async def commit_all(self, offset: int, queues: int = 4, topic: str = "T", group: str = "G") -> None:
        for queue_id in range(queues):
            (await self.commit(offset, topic, queue_id, group)).require_success()

    async def stored(
        self,
        topic: str = "T",
        queue_id: int = 0,
        group: str = "G",
        set_zero_if_not_found: bool | None = None,
    ) -> RemotingCommand:
        header = QueryConsumerOffsetRequestHeader(group, topic, queue_id, set_zero_if_not_found)
        return await self.ask(RequestCode.QUERY_CONSUMER_OFFSET, header)

    async def stored_offset(self, topic: str = "T", queue_id: int = 0, group: str = "G") -> int:
        return int(str((await self.stored(topic, queue_id, group)).require_success().ext["offset"]))

    async def search(self, timestamp: int, boundary: str | None = None, topic: str = "T") -> int:
        header = SearchOffsetRequestHeader(topic, 0, timestamp, boundary)
        return await self.number(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header)

    async def number(self, code: int, header: CommandHeader) -> int:
        return int(str((await self.ask(code, header)).require_success().ext["offset"]))

    async def reset(
        self, timestamp: int, topic: str = "T", group: str = "G", force: bool = True, **fields: Any
    ) -> RemotingCommand:
        header = ResetOffsetRequestHeader(topic, group, timestamp, force, **fields)
        return await self.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)

    async def targets(self, timestamp: int, topic: str = "T", **fields: Any) -> dict[int, int]:
        """Queue to offset, as a reset that has to succeed answers."""
        response = await self.reset(timestamp, topic, **fields)
        table = decode_body(response.require_success(), ResetOffsetBody).offset_table
        assert all(queue[:2] == (topic, "broker-a") for queue in table)
        return {queue.queue_id: offset for queue, offset in table.items()}

    async def record(self, queue_id: int = 0, group: str = "G") -> tuple[int, int]:
        """Offset and epoch as 14 answers them."""
        header = (await self.stored("T", queue_id, group)).require_success()
        record = header.decode_header(QueryConsumerOffsetResponseHeader)
        return record.offset, record.epoch or 0
