"""A broker whose tables are full, in a simulated world with a name server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import msgspec

from rewindmq.broker.broker import Broker
from rewindmq.broker.clients.channel import ClientChannel
from rewindmq.broker.clients.consumer_manager import Subscriptions, subscription_bytes
from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.context import BrokerContext
from rewindmq.broker.handlers import HANDLERS
from rewindmq.broker.limits import (
    MAX_GROUPS_PER_CONNECTION,
    MAX_QUEUE_LOCKS_PER_CONNECTION,
    MAX_STATS_ITEMS,
)
from rewindmq.broker.store.config import FlushDiskType, StoreConfig
from rewindmq.namesrv.config import NamesrvConfig
from rewindmq.namesrv.server import NameServer
from rewindmq.protocol.body.group import SubscriptionGroupConfig
from rewindmq.protocol.body.heartbeat import ConsumerData, HeartbeatData, ProducerData
from rewindmq.protocol.body.offset_table import GetConsumerStatusBody
from rewindmq.protocol.body.registration import TopicConfig
from rewindmq.protocol.body.running_info import CMResult, ConsumeMessageDirectlyResult
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.offset import GetMaxOffsetRequestHeader
from rewindmq.protocol.header.pull import PullMessageRequestHeader
from rewindmq.protocol.header.send import SendMessageRequestHeaderV2
from rewindmq.protocol.limits import MAX_FRAME_BYTES
from rewindmq.protocol.message import Message
from rewindmq.protocol.message.batch import encode_batch
from rewindmq.protocol.message.properties import format_properties
from rewindmq.protocol.message.sysflag import PullSysFlag
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.client import RemotingClient
from rewindmq.protocol.remoting.connection import Connection, Handler
from rewindmq.protocol.remoting.process.collector import tune_collector
from rewindmq.protocol.remoting.server import RemotingServer
from rewindmq.protocol.subscription import build_subscription_data
from rewindmq.protocol.version import LanguageCode, MQVersion
from rewindmq.race.sim.world import EPOCH_MS
from tools.worst_frames.frames import Hall, names, request
from tools.worst_frames.meter import MeteredWorld
from tools.worst_frames.sizes import Sizes

# The topic with the most queues, the group with the most offsets, and topics for one purpose each.
WIDE: Final = "WideTopic"
GROUP: Final = "WideGroup"
# The group of all clients but the first.
CROWD: Final = "Crowd"
KEYED: Final = "KeyedTopic"
SQL: Final = "SqlTopic"
LARGE: Final = "LargeTopic"
AWAITED: Final = "AwaitedTopic"
KEY: Final = "K"
BROKER: Final = "broker-a"
NAMESRV_HOST: Final = "10.0.0.2"
_TOPIC_LENGTH: Final = 127
# The name of a group's retry topic is 7 characters longer.
_GROUP_LENGTH: Final = 120
_BATCH: Final = 500
# Every so many queues of the widest topic have a message, 1,000 of them at full size.
_QUEUES_A_MESSAGE: Final = 65
_ROOM: Final = 2_000
# Groups of the first client; it may join a few more.
_FIRST_GROUPS: Final = MAX_GROUPS_PER_CONNECTION - 10


class BrokerHall(Hall):
    """A broker with the topics, groups, offsets, locks, clients and messages that ``Sizes`` names.

    Attributes:
        first: the client whose connection has every group, and the suspended pulls of a later frame.
    """

    codes = HANDLERS.keys()

    def __init__(self, world: MeteredWorld, sizes: Sizes, root: Path) -> None:
        super().__init__(world, sizes)
        self._root = root
        # Room for the topics and groups that the measured requests create.
        self._room = min(_ROOM, sizes.groups // 2)
        self.topics = names("T", sizes.topics - self._room - sizes.topics // 50, _TOPIC_LENGTH)
        self.groups = names("G", sizes.groups - self._room - sizes.groups // 50, _GROUP_LENGTH)
        self.new_groups = names("N", self._room, _GROUP_LENGTH)

    def bystander(self) -> RemotingCommand:
        return request(RequestCode.GET_MAX_OFFSET, GetMaxOffsetRequestHeader(KEYED, 0))

    @property
    def context(self) -> BrokerContext:
        return self._broker.context

    async def open(self) -> None:
        """Write the tables, start the servers, connect the clients and store the messages."""
        world, sizes = self.world, self.sizes
        self._write_tables()
        namesrv = NameServer(world.runtime(NAMESRV_HOST), NamesrvConfig(bind_address=NAMESRV_HOST))
        await world.spawn(NAMESRV_HOST, namesrv.start())
        self._namesrv = namesrv
        config = BrokerConfig(
            # It has every request.
            profile=Profile.V53,
            recall_message_enable=True,
            broker_name=BROKER,
            namesrv_addr=namesrv.address,
            bind_address=self.host,
            store_path_root_dir=str(self._root),
            enable_property_filter=True,
            clone_group_offset_of_all_topics=True,
            store=StoreConfig(
                mapped_file_size_commit_log=256 << 20,
                mapped_file_size_consume_queue=600_000,
                max_hash_slot_num=1_000,
                max_index_num=4 * sizes.stored,
                flush_disk_type=FlushDiskType.ASYNC_FLUSH,
                physical_memory_bytes=8 << 30,
            ),
        )
        self._broker = Broker(world.runtime(self.host), config)
        await world.spawn(self.host, self._broker.start())
        self.address = self._broker.address
        status: dict[int, Handler] = {RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT: self._status}
        self.first = self.client({**_ANSWERS, **status})
        await self._connect_clients()
        await self._store_messages()
        self._fill_statistics()
        tune_collector()

    async def close(self) -> None:
        await super().close()
        await self.world.spawn(self.host, self._broker.close())
        await self.world.spawn(NAMESRV_HOST, self._namesrv.close())

    def connection(self, number: int) -> Connection:
        server: RemotingServer = self._broker._server
        return tuple(server.connections)[number]

    async def send(self, client: RemotingClient, topic: str, queue_id: int = 0, body: bytes = b"x") -> int:
        """Store one message; return its position in the log."""
        answer = await self.ask(client, send_request(topic, queue_id, body))
        message_id = str(answer.require_success().ext["msgId"])
        return int(message_id[-16:], 16)

    def _write_tables(self) -> None:
        folder = self._root / "config"
        folder.mkdir(parents=True)
        sizes = self.sizes
        wide = TopicConfig(WIDE, read_queue_nums=sizes.queues, write_queue_nums=sizes.queues)
        own = [
            TopicConfig(name, read_queue_nums=1, write_queue_nums=1) for name in (KEYED, SQL, LARGE, AWAITED)
        ]
        many = [TopicConfig(name, read_queue_nums=4, write_queue_nums=4) for name in self.topics]
        _write(
            folder / "topics.json",
            "topicConfigTable",
            {topic.topic_name: topic for topic in (wide, *own, *many)},
        )
        groups = [SubscriptionGroupConfig(name) for name in (GROUP, *self.groups)]
        _write(
            folder / "subscriptionGroup.json",
            "subscriptionGroupTable",
            {each.group_name: each for each in groups},
        )
        offsets: dict[str, dict[str, int]] = {
            f"{WIDE}@{GROUP}": dict.fromkeys(map(str, range(sizes.queues)), 0)
        }
        # Room for the offsets that the measured requests store.
        left = sizes.offsets - 2 * sizes.queues - 2
        for number, group in enumerate(self.groups):
            if left <= 0:
                break
            queues = min(left, max(4, left // max(1, len(self.groups) - number)))
            offsets[f"{self.topics[number % len(self.topics)]}@{group}"] = dict.fromkeys(
                map(str, range(queues)), 7
            )
            left -= queues
        _write(folder / "consumerOffset.json", "offsetTable", offsets)

    async def _connect_clients(self) -> None:
        await self.ask(self.first, heartbeat("first", (GROUP,), (WIDE,), ("Producers",)))
        for number in range(self.sizes.clients):
            await self.ask(self.client(), heartbeat(f"client-{number}", (CROWD,), (WIDE,), (CROWD,)))
        for number, group in enumerate(self.groups):
            self._join(group, 0 if number < _FIRST_GROUPS else 1 + number % self.sizes.clients)
        share = min(MAX_QUEUE_LOCKS_PER_CONNECTION, self.sizes.locks // 10)
        for number in range(self.sizes.locks // share - 1):
            queues = [MessageQueue(self.topics[number], BROKER, queue_id) for queue_id in range(share)]
            client_id = f"client-{number}"
            self.context.clients.queue_locks.lock(
                self.connection(1 + number), self.groups[0], client_id, queues
            )

    def _fill_statistics(self) -> None:
        items = self.context.stats.items
        for number in range(min(MAX_STATS_ITEMS, len(self.topics))):
            topic, group = self.topics[number], self.groups[number % len(self.groups)]
            items.topic_puts[topic].add(1)
            items.pulls.count(topic, group, number, 1, 1)
            items.count_send_back(topic, group)
            items.count_delayed(number, 1)
            items.count_delivered(number, 1)

    def _join(self, group: str, number: int) -> None:
        """Register a connection's consumer and producer of a group, without a heartbeat for each."""
        connection, context = self.connection(number), self.context
        channel = ClientChannel(connection, f"c{number}", LanguageCode.JAVA, MQVersion.V4_9_4, self.world.now)
        consumer = ConsumerData(group)
        subscription = build_subscription_data(self.topics[0], "*")
        subscriptions = Subscriptions({subscription.topic: subscription}, subscription_bytes(subscription))
        context.clients.consumers.register(consumer, channel, subscriptions, notify=False)
        context.clients.producers.register(group, channel)

    async def _store_messages(self) -> None:
        client, sizes = self.first, self.sizes
        keyed = Message(KEYED, b"x" * 100, properties={"KEYS": KEY, "TAGS": "A"})
        # All messages but the first have one store time, two seconds after the first.
        await self.ask(client, send_request(KEYED, 0, b"x", properties=format_properties({"KEYS": KEY})))
        await self.world.sleep(2)
        self.noted["stored_ms"] = EPOCH_MS + round(self.world.now * 1_000)
        for _ in range(0, sizes.stored, _BATCH):
            batch = encode_batch([keyed] * _BATCH)
            await self.ask(client, send_request(KEYED, 0, batch, code=RequestCode.SEND_BATCH_MESSAGE))
        digits = format_properties({"a": "1" * 16_000})
        for _ in range(min(200, sizes.stored)):
            await self.ask(client, send_request(SQL, 0, b"x", properties=digits))
        for queue_id in range(0, sizes.queues, _QUEUES_A_MESSAGE):
            await self.send(client, WIDE, queue_id)
        self.noted["large"] = await self.send(client, LARGE, 0, bytes(sizes.message_bytes))

    def _status(self, connection: Connection, asked: RemotingCommand) -> RemotingCommand:
        table = {MessageQueue(WIDE, BROKER, queue_id): 1 for queue_id in range(self.sizes.queues)}
        return RemotingCommand(0, body=GetConsumerStatusBody(table))

    async def suspend_pulls(self, client: RemotingClient, count: int) -> None:
        """Leave pulls of ``AWAITED`` waiting; their responses are ignored."""
        header = PullMessageRequestHeader(
            GROUP,
            AWAITED,
            0,
            self.context.store.max_offset(AWAITED, 0),
            32,
            int(PullSysFlag.SUSPEND | PullSysFlag.SUBSCRIPTION),
            0,
            600_000,
            0,
            "*",
        )
        for _ in range(count):
            self.ask_nothing(client, request(RequestCode.PULL_MESSAGE, header))
        await self.world.sleep(0.001)


def _running_info(connection: Connection, asked: RemotingCommand) -> RemotingCommand:
    """Return the largest answer that fits into a frame."""
    return RemotingCommand(0, body=b'{"jstack":"' + b"x" * (MAX_FRAME_BYTES - 70_000) + b'"}')


def _consumed(connection: Connection, asked: RemotingCommand) -> RemotingCommand:
    return RemotingCommand(0, body=ConsumeMessageDirectlyResult(CMResult.CR_SUCCESS))


def _replied(connection: Connection, asked: RemotingCommand) -> RemotingCommand:
    return RemotingCommand(0)


def _told(connection: Connection, asked: RemotingCommand) -> None:
    """Ignore a notification."""


_ANSWERS: Final[Mapping[int, Handler]] = MappingProxyType(
    {
        RequestCode.GET_CONSUMER_RUNNING_INFO: _running_info,
        RequestCode.CONSUME_MESSAGE_DIRECTLY: _consumed,
        RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT: _replied,
        RequestCode.RESET_CONSUMER_CLIENT_OFFSET: _told,
        RequestCode.NOTIFY_CONSUMER_IDS_CHANGED: _told,
    }
)


def send_request(
    topic: str,
    queue_id: int,
    body: bytes,
    *,
    code: RequestCode = RequestCode.SEND_MESSAGE_V2,
    properties: str = "",
    sys_flag: int = 0,
) -> RemotingCommand:
    header = SendMessageRequestHeaderV2(
        "Producers",
        topic,
        "TBW102",
        4,
        queue_id,
        sys_flag,
        1,
        0,
        properties,
        batch=code == RequestCode.SEND_BATCH_MESSAGE,
    )
    return request(code, header, body)


def heartbeat(
    client_id: str, groups: tuple[str, ...], topics: tuple[str, ...], producers: tuple[str, ...] = ()
) -> RemotingCommand:
    subscriptions = [build_subscription_data(topic, "*") for topic in topics]
    body = HeartbeatData(
        client_id,
        [ProducerData(name) for name in producers],
        [ConsumerData(name, subscription_data_set=subscriptions) for name in groups],
    )
    return request(RequestCode.HEART_BEAT, body=body)


def _write(path: Path, key: str, entries: dict[str, Any]) -> None:
    document = {key: msgspec.to_builtins(entries), "dataVersion": {"timestamp": 1, "counter": 1}}
    path.write_text(json.dumps(document))
