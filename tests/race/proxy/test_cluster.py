"""A whole cluster runs behind the proxy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rewindmq import ConsumeConcurrentlyStatus, ConsumeFromWhere, Message, Producer, PushConsumer
from rewindmq.broker.broker import Broker
from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.store.config import StoreConfig
from rewindmq.client.admin.admin_client import AdminClient
from rewindmq.namesrv.config import NamesrvConfig
from rewindmq.namesrv.server import NameServer
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import SerializeType
from rewindmq.race.history import Lab
from rewindmq.race.proxy.frame_proxy import FrameProxy
from rewindmq.race.proxy.pattern import Form, FramePattern
from tests.race.proxy.venue import CODECS, COMMIT, NOTICE, PULL, Play, Venue


class Inbox:
    def __init__(self) -> None:
        self.offsets: list[int] = []

    async def __call__(self, messages: Sequence[Any]) -> ConsumeConcurrentlyStatus:
        self.offsets += [message.queue_offset for message in messages]
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS


class Cluster:
    """A name server, one broker with one queue, messages in it, and a consumer behind a proxy."""

    def __init__(self, venue: Venue, root: Path) -> None:
        self.venue = venue
        self.root = root
        self.inbox = Inbox()
        self.broker: Broker
        self.proxy: FrameProxy
        self.admin: AdminClient
        self._producer: Producer

    async def open(self) -> None:
        runtime, host = self.venue.place()
        namesrv = NameServer(runtime, NamesrvConfig(bind_address=host, listen_port=0))
        await namesrv.start()
        self.venue.at_end(namesrv.close)
        runtime, host = self.venue.place()
        config = BrokerConfig(
            broker_name="broker-a",
            bind_address=host,
            listen_port=0,
            namesrv_addr=namesrv.address,
            store_path_root_dir=str(self.root),
            default_topic_queue_nums=1,
            store=StoreConfig(
                mapped_file_size_commit_log=1 << 20,
                mapped_file_size_consume_queue=60_000,
                physical_memory_bytes=1 << 30,
            ),
        )
        self.broker = Broker(runtime, config)
        await self.broker.start()
        self.venue.at_end(self.broker.close)
        self.proxy = await self.venue.proxy(namesrv.address)
        self.admin = await self.venue.entered(AdminClient(namesrv.address, runtime=self.venue.place()[0]))
        producer = Producer("P", namesrv.address, runtime=self.venue.place()[0])
        self._producer = await self.venue.entered(producer)
        await self.send(5)

    async def send(self, count: int) -> None:
        for _ in range(count):
            await self._producer.send(Message("T", b"x"))

    async def consume(self, serialize_type: SerializeType | None = None) -> PushConsumer:
        consumer = PushConsumer(
            "G",
            self.proxy.address,
            runtime=self.venue.place()[0],
            serialize_type=serialize_type,
            consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        )
        consumer.subscribe("T")
        consumer.register_message_listener(self.inbox)
        await self.venue.entered(consumer)
        return consumer

    def stored(self) -> dict[int, int]:
        return dict(self.broker.context.offsets.table.offsets_of("G", "T"))


@pytest.mark.parametrize("serialize_type", CODECS)
def test_a_whole_cluster_behind_a_proxy(play: Play, tmp_path: Path, serialize_type: SerializeType) -> None:
    async def scene(venue: Venue) -> None:
        cluster = Cluster(venue, tmp_path)
        await cluster.open()
        hold = cluster.proxy.hold(FramePattern(PULL, Form.RESPONSE, 0, {"topic": "T", "queueId": 0}))
        consumer = await cluster.consume(serialize_type)
        await hold.wait(1)
        assert cluster.inbox.offsets == []
        (held,) = hold.held
        assert held.source == "broker-a"
        assert held.fields["offsets"] == [0, 1, 2, 3, 4]
        assert held.fields["nextBeginOffset"] == 5
        hold.release()
        await venue.until(lambda: cluster.inbox.offsets == [0, 1, 2, 3, 4])
        assert venue.frames(Lab.FRAME_ARRIVED, RequestCode.HEART_BEAT, target="broker-a")

        def pulled() -> set[int]:
            arrived = venue.frames(Lab.FRAME_ARRIVED, PULL, form="request", target="broker-a")
            return {frame["fields"]["queueOffset"] for frame in arrived}

        # No frame of the consumer went to the broker directly.
        await venue.until(lambda: pulled() >= {0, 5})
        await consumer.shutdown()
        # The last commit is oneway.
        await venue.until(lambda: cluster.stored() == {0: 5})
        commits = venue.frames(Lab.FRAME_ARRIVED, COMMIT, form="oneway")
        assert commits[-1]["fields"]["commitOffset"] == 5

    play(scene)


def test_a_reset_notification_takes_effect_when_it_is_released(play: Play, tmp_path: Path) -> None:
    """While the reset notification is held, the consumer continues; once released, it resets the queue."""

    async def scene(venue: Venue) -> None:
        cluster = Cluster(venue, tmp_path)
        await cluster.open()
        consumer = await cluster.consume()
        await venue.until(lambda: len(cluster.inbox.offsets) == 5)
        # The next pull carries the offset, so the broker has an offset to reset.
        await cluster.send(1)
        await venue.until(lambda: cluster.stored() == {0: 6} or len(cluster.inbox.offsets) == 6)
        await cluster.send(1)
        await venue.until(lambda: cluster.stored().get(0, 0) > 0)
        hold = cluster.proxy.hold(FramePattern(NOTICE))
        await cluster.admin.resets.reset("T", "G", 0)
        await hold.wait()
        assert not consumer.is_suspended
        (held,) = hold.held
        assert held.fields["targets"] == [["broker-a", 0, 0]]
        hold.release()
        await venue.until(lambda: consumer.is_suspended)

    play(scene)
