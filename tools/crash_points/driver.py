"""The client of a workload: sends requests and notes what the broker promised."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Final

from rewindmq.protocol.body.group import SubscriptionGroupConfig
from rewindmq.protocol.body.heartbeat import ConsumerData, HeartbeatData
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import Body, CommandHeader, RemotingCommand
from rewindmq.protocol.header.admin import CreateTopicRequestHeader, DeleteTopicRequestHeader
from rewindmq.protocol.header.message import EndTransactionRequestHeader, QueryMessageRequestHeader
from rewindmq.protocol.header.offset import UpdateConsumerOffsetRequestHeader
from rewindmq.protocol.header.reset import ResetOffsetRequestHeader
from rewindmq.protocol.header.send import SendMessageRequestHeaderV2, SendMessageResponseHeader
from rewindmq.protocol.message import Message
from rewindmq.protocol.message.batch import encode_batch
from rewindmq.protocol.message.message_id import parse_offset_message_id
from rewindmq.protocol.message.properties import format_properties
from rewindmq.protocol.remoting.client import RemotingClient
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.protocol.subscription import build_subscription_data
from rewindmq.race.sim import World
from tools.crash_points.ledger import (
    AcknowledgedSend,
    Attempted,
    CrashLedger,
    Delayed,
    Ending,
    Expiring,
    GroupSaved,
    HalfStored,
    ResetDone,
    Timed,
    TopicDropped,
    TopicDropping,
    TopicSaved,
)

_SECONDS: Final = 60.0
# Bodies within a sector, over sectors, and over pages.
_BODY_BYTES: Final = (0, 40, 300, 700, 1_500, 4_000)
COMMIT, ROLLBACK = 8, 12


class BrokerDriver:
    """Requests to one broker.

    Attributes:
        world: for virtual time.
        chance: for every choice of the workload.
    """

    def __init__(self, world: World, address: str, ledger: CrashLedger, chance: Random) -> None:
        self.world = world
        self.chance = chance
        self._address = address
        self._ledger = ledger
        runtime = world.runtime("client")
        self._clock = runtime.clock
        self._client = RemotingClient(runtime)
        self._count = 0

    async def close(self) -> None:
        """Close the connection."""
        await self._client.close()

    async def ask(
        self, code: RequestCode, header: CommandHeader | None = None, body: Body = None
    ) -> RemotingCommand:
        """Send one request and return its response."""
        return await self._client.invoke(self._address, RemotingCommand(code, header, body), _SECONDS)

    def _message(self, topic: str, key: str = "") -> tuple[bytes, dict[str, str]]:
        """Return the body and properties of the next message, and note that it may be stored."""
        self._count += 1
        key = key or f"K{self._count}"
        body = b"%d:" % self._count + b"x" * self.chance.choice(_BODY_BYTES)
        self._ledger.add(Attempted(topic, body, key))
        # The text after the key makes torn properties visible.
        return body, {"TAGS": f"T{self._count % 3}", "KEYS": key, "rest": "y" * self.chance.choice((3, 600))}

    async def send(
        self, topic: str = "T", queue_id: int = 0, *, delay: int = 0, timer_ms: int = 0, key: str = ""
    ) -> SendMessageResponseHeader:
        """Send one message.

        Args:
            delay: its delay level, 0 for none.
            timer_ms: its delay as a timer message, 0 for none.
        """
        body, properties = self._message(topic, key)
        key = properties["KEYS"]
        if delay:
            properties["DELAY"] = str(delay)
        if timer_ms:
            properties["TIMER_DELAY_MS"] = str(timer_ms)
        stored = await self._send(RequestCode.SEND_MESSAGE_V2, topic, queue_id, body, properties)
        if delay:
            self._ledger.add(Delayed(delay, stored.queue_offset, body))
        elif timer_ms:
            self._ledger.add(Timed(body))
        else:
            self._ledger.add(AcknowledgedSend(topic, queue_id, stored.queue_offset, body, key))
        return stored

    async def _send(
        self, code: RequestCode, topic: str, queue_id: int, body: bytes, properties: dict[str, str]
    ) -> SendMessageResponseHeader:
        header = SendMessageRequestHeaderV2(
            producer_group="PG",
            topic=topic,
            default_topic="TBW102",
            default_topic_queue_nums=4,
            queue_id=queue_id,
            sys_flag=4 if "TRAN_MSG" in properties else 0,
            born_timestamp=self._clock.now_ms(),
            flag=0,
            properties=format_properties(properties),
        )
        response = (await self.ask(code, header, body)).require_success()
        return response.decode_header(SendMessageResponseHeader)

    async def send_many(self, count: int, topic: str = "T", queues: int = 2) -> None:
        """Send messages at the same time, so that they share flushes."""
        await asyncio.gather(*(self.send(topic, number % queues) for number in range(count)))

    async def send_batch(self, count: int, topic: str = "T", queue_id: int = 0) -> None:
        """Send a batch of small messages."""
        bodies = []
        for _ in range(count):
            self._count += 1
            body = b"%d:batch" % self._count
            self._ledger.add(Attempted(topic, body, f"K{self._count}"))
            bodies.append((body, f"K{self._count}"))
        data = encode_batch([Message(topic, body, properties={"KEYS": key}) for body, key in bodies])
        stored = await self._send(RequestCode.SEND_BATCH_MESSAGE, topic, queue_id, data, {})
        for number, (body, key) in enumerate(bodies):
            self._ledger.add(AcknowledgedSend(topic, queue_id, stored.queue_offset + number, body, key))

    async def send_half(self, topic: str = "T") -> tuple[bytes, SendMessageResponseHeader]:
        """Send a half message; return its body and where it was stored."""
        body, properties = self._message(topic)
        properties |= {"TRAN_MSG": "true", "PGROUP": "PG"}
        stored = await self._send(RequestCode.SEND_MESSAGE_V2, topic, 0, body, properties)
        self._ledger.add(HalfStored(body))
        return body, stored

    async def end(self, body: bytes, half: SendMessageResponseHeader, verdict: int) -> None:
        """Commit or roll back a half message."""
        self._ledger.add(Ending(body, verdict == COMMIT))
        _, position = parse_offset_message_id(half.msg_id)
        header = EndTransactionRequestHeader("PG", half.queue_offset, position, verdict, "id")
        (await self.ask(RequestCode.END_TRANSACTION, header)).require_success()

    async def save_topic(self, topic: str = "T", queues: int = 2, *, is_compacted: bool = False) -> None:
        """Create or change a topic."""
        attributes = "+cleanup.policy=COMPACTION" if is_compacted else None
        header = CreateTopicRequestHeader(
            topic, "TBW102", queues, queues, 6, "SINGLE_TAG", attributes=attributes
        )
        (await self.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, header)).require_success()
        self._ledger.add(TopicSaved(topic, queues, is_compacted))

    async def drop_topic(self, topic: str) -> None:
        """Delete a topic and its queues."""
        self._ledger.add(TopicDropping(topic))
        header = DeleteTopicRequestHeader(topic)
        (await self.ask(RequestCode.DELETE_TOPIC_IN_BROKER, header)).require_success()
        self._ledger.add(TopicDropped(topic))

    async def save_group(self, group: str, retries: int) -> None:
        """Create or change a group."""
        config = SubscriptionGroupConfig(group, retry_max_times=retries)
        (await self.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=config)).require_success()
        self._ledger.add(GroupSaved(group, retries))

    async def heartbeat(self, group: str = "G", topic: str = "T") -> None:
        """Register as a consumer, so that a classic reset has somebody to tell."""
        data = HeartbeatData(
            "c1", [], [ConsumerData(group, subscription_data_set=[build_subscription_data(topic, "*")])]
        )
        (await self.ask(RequestCode.HEART_BEAT, body=data)).require_success()

    async def commit(self, offset: int, queue_id: int = 0, group: str = "G", topic: str = "T") -> None:
        """Commit an offset; it becomes durable later."""
        header = UpdateConsumerOffsetRequestHeader(group, topic, queue_id, offset)
        await self.ask(RequestCode.UPDATE_CONSUMER_OFFSET, header)

    async def reset(self, mode: ResetMode, timestamp: int, group: str = "G", topic: str = "T") -> None:
        """Reset a group's offsets in all queues; only the fenced mode promises that they are durable."""
        header = ResetOffsetRequestHeader(topic, group, timestamp, True, reset_mode=mode)
        (await self.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)).require_success()
        if mode is ResetMode.FENCED:
            self._ledger.add(ResetDone(group, topic, timestamp))

    async def query(self, key: str, topic: str = "T") -> None:
        """Query by key, which brings the key index up to date."""
        header = QueryMessageRequestHeader(topic, key, 32, 0, 2**62)
        await self.ask(RequestCode.QUERY_MESSAGE, header)

    async def expire(self) -> None:
        """Have old files deleted soon."""
        self._ledger.add(Expiring())
        (await self.ask(RequestCode.DELETE_EXPIRED_COMMITLOG)).require_success()

    async def clean_queues(self) -> None:
        """Remove queues without messages."""
        (await self.ask(RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE)).require_success()
