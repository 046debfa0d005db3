"""A small cluster in one process under virtual time, and mqadmin's commands run against it."""

from __future__ import annotations

import argparse
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rewindmq.broker.broker import Broker
from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.store.config import StoreConfig
from rewindmq.client import (
    AdminClient,
    ConsumeConcurrentlyStatus,
    ConsumeFromWhere,
    Message,
    MessageQueue,
    Producer,
    PushConsumer,
)
from rewindmq.client.admin import cli
from rewindmq.client.admin.commands.command import Printed
from rewindmq.client.admin.commands.table import COMMANDS
from rewindmq.client.listener import MessageListener
from rewindmq.namesrv.config import NamesrvConfig
from rewindmq.namesrv.server import NameServer
from rewindmq.protocol.body.registration import (
    DataVersion,
    RegisterBrokerBody,
    TopicConfig,
    TopicConfigSerializeWrapper,
)
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.namesrv import RegisterBrokerRequestHeader
from rewindmq.protocol.points import Probe
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.client import RemotingClient
from rewindmq.protocol.remoting.connection import Handler
from rewindmq.protocol.remoting.server import RemotingServer
from rewindmq.race.sim import World

NAMESRV = "10.0.0.1:9876"
TOPIC = "TopicTest"
GROUP = "rewinders"


@dataclass
class Stage:
    """A running cluster in a world: one name server, brokers broker-a, broker-b, ..."""

    world: World
    root: Path
    profile: Profile
    exits: AsyncExitStack
    brokers: dict[str, Broker] = field(default_factory=dict)
    consumed: list[tuple[MessageQueue, int]] = field(default_factory=list)
    namesrv: str = NAMESRV

    async def start_namesrv(self) -> None:
        config = NamesrvConfig(bind_address="10.0.0.1", profile=self.profile)
        server = NameServer(self.world.runtime("10.0.0.1"), config)
        await server.start()
        self.exits.push_async_callback(server.close)

    async def start_broker(self, name: str, **keys: object) -> Broker:
        host = f"10.0.1.{len(self.brokers) + 1}"
        config = BrokerConfig(
            broker_name=name,
            namesrv_addr=NAMESRV,
            bind_address=host,
            store_path_root_dir=str(self.root / name),
            profile=self.profile,
            store=StoreConfig(
                mapped_file_size_commit_log=1 << 20,
                mapped_file_size_consume_queue=20_000,
                max_hash_slot_num=1_000,
                max_index_num=10_000,
            ),
            **keys,
        )
        broker = Broker(self.world.runtime(host), config)
        await broker.start()
        self.exits.push_async_callback(broker.close)
        self.brokers[name] = broker
        return broker

    async def start_mute_broker(self, name: str, reset: Handler = lambda connection, request: None) -> None:
        """Something registered as a broker that takes 222, by itself unanswered, and refuses all else."""
        runtime = self.world.runtime("10.0.1.99")
        server = RemotingServer(runtime, {RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: reset})
        await server.start("10.0.1.99", 10911)
        client = RemotingClient(runtime)
        self.exits.push_async_callback(server.close)
        self.exits.push_async_callback(client.close)
        # No queues, so that consumers leave it alone; two topics, as v53 refuses a first registration of one.
        table = {
            topic: TopicConfig(topic_name=topic, read_queue_nums=0, write_queue_nums=0)
            for topic in (TOPIC, name)
        }
        version = DataVersion(timestamp=1, counter=1)
        body = RegisterBrokerBody(topic_config_serialize_wrapper=TopicConfigSerializeWrapper(table, version))
        header = RegisterBrokerRequestHeader(name, "10.0.1.99:10911", "DefaultCluster", "", 0)
        command = RemotingCommand(RequestCode.REGISTER_BROKER, header, body)
        (await client.invoke(NAMESRV, command)).require_success()

    async def admin(self, probe: Probe | None = None) -> AdminClient:
        client = AdminClient(NAMESRV, self.world.runtime("10.0.9.1", probe=probe), profile=self.profile)
        return await self.exits.enter_async_context(client)

    async def create_topic(self, topic: str = TOPIC, read: int = 2, write: int = 2) -> None:
        admin = await self.admin()
        config = TopicConfig(topic_name=topic, read_queue_nums=read, write_queue_nums=write)
        for broker in self.brokers.values():
            await admin.create_and_update_topic_config(broker.address, config)

    async def send(self, per_queue: int, *, gap: float = 1.0, topic: str = TOPIC) -> None:
        """``per_queue`` rounds of one message to every queue, ``gap`` seconds apart."""
        runtime = self.world.runtime("10.0.9.2")
        async with Producer("senders", NAMESRV, runtime=runtime, profile=self.profile) as producer:
            queues = await producer.fetch_publish_message_queues(topic)
            for number in range(per_queue):
                for queue in queues:
                    await producer.send(Message(topic, b"Hello RocketMQ %d" % number, "TagA"), queue=queue)
                await runtime.timers.sleep(gap)

    @asynccontextmanager
    async def consumer(
        self,
        group: str = GROUP,
        host: str = "10.0.2.1",
        listener: MessageListener | None = None,
        profile: Profile | None = None,
    ) -> AsyncIterator[PushConsumer]:
        """A running member of the group; what it consumes is appended to ``consumed``, or goes to a listener
        of the test's own."""
        consumer = PushConsumer(
            group,
            NAMESRV,
            runtime=self.world.runtime(host),
            profile=profile or self.profile,
            client_ip=host,
            consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        )
        consumer.subscribe(TOPIC)

        async def note(messages):
            self.consumed += [(message.message_queue, message.queue_offset) for message in messages]
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

        consumer.register_message_listener(listener or note)
        async with consumer:
            yield consumer

    async def sleep(self, seconds: float) -> None:
        await self.world.runtime("10.0.9.3").timers.sleep(seconds)

    async def run(self, line: str) -> list[str]:
        """The lines ``rewindmq admin LINE`` prints."""
        return await self.run_arguments(line.split())

    async def run_arguments(self, words: list[str]) -> list[str]:
        """The same for words that may hold spaces."""
        return [text for printed in await self._execute(words) for text in printed.lines]

    async def data(self, line: str) -> object:
        """The one value that ``rewindmq admin LINE --json`` prints."""
        (printed,) = await self._execute(line.split())
        return printed.data

    async def _execute(self, words: list[str]) -> list[Printed]:
        parser = argparse.ArgumentParser()
        cli.add_arguments(parser)
        arguments = parser.parse_args([*words, "--profile", self.profile])
        command = next(item for item in COMMANDS if item.name.lower() == arguments.admin_command.lower())
        admin = await self.admin()
        return [printed async for printed in command.execute(admin, arguments)]

    def stored(self, queue: MessageQueue, group: str = GROUP) -> int:
        """The broker's own table entry, -1 when there is none."""
        offsets = self.brokers[queue.broker_name].context.offsets
        return offsets.query(group, queue.topic, queue.queue_id)


Scenario = Callable[[Stage], Awaitable[None]]


@pytest.fixture
def play(tmp_path: Path) -> Callable[..., None]:
    """Run a scenario on a fresh stage: ``play(scenario, brokers=2, profile=...)``."""

    def run(scenario: Scenario, *, brokers: int = 1, profile: Profile = Profile.V49, **keys: object) -> None:
        world = World(1)

        async def main() -> None:
            async with AsyncExitStack() as exits:
                stage = Stage(world, tmp_path, profile, exits)
                await stage.start_namesrv()
                for index in range(brokers):
                    await stage.start_broker(f"broker-{chr(ord('a') + index)}", **keys)
                await scenario(stage)

        world.run(main())

    return run


@pytest.fixture
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The tool's local zone is UTC."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()
