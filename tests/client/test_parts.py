"""Small parts: ids, configuration, options, the local offset file, publish info."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from rewindmq.client import ClientError, ConsumeFromWhere, MessageQueue, PushConsumer
from rewindmq.client.client_config import make_config
from rewindmq.client.instance import ClientInstance
from rewindmq.client.local_offset_store import LocalFileOffsetStore
from rewindmq.client.offset_store import RemoteOffsetStore
from rewindmq.client.route import PublishInfo, publish_queues, subscribe_queues, template_route
from rewindmq.client.start_offset import start_offset
from rewindmq.protocol.body.route import BrokerData, QueueData, TopicRouteData
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.sysflag import Perm
from rewindmq.race.sim import World

ADDRESS = "127.0.0.1:9876"
Q0, Q1 = MessageQueue("T", "broker-a", 0), MessageQueue("T", "broker-a", 1)


def test_client_ids() -> None:
    config = make_config(ADDRESS, instance_name="x", unit_name="u", client_ip="10.0.0.1")
    assert config.client_id == "10.0.0.1@x@u"
    runtime = World().runtime()
    by_profile = {
        profile: [make_config(ADDRESS, profile=profile).with_own_instance_name(runtime) for _ in range(2)]
        for profile in Profile
    }
    assert by_profile[Profile.V42][0].client_id == by_profile[Profile.V42][1].client_id
    for profile in (Profile.V49, Profile.V53):
        assert by_profile[profile][0].client_id != by_profile[profile][1].client_id
        assert "#" in by_profile[profile][0].client_id


def test_name_servers_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAMESRV_ADDR", "a:1; b:2;")
    assert make_config(None).namesrv_addrs == ("a:1", "b:2")
    assert make_config("c:3").namesrv_addrs == ("c:3",)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"consume_thread_max": 0}, "consume_thread_max Out of range"),
        ({"consume_message_batch_max_size": 1025}, "consume_message_batch_max_size Out of range"),
        ({"pull_batch_size": 0}, "pull_batch_size Out of range"),
        ({"consume_concurrently_max_span": 65_536}, "consume_concurrently_max_span Out of range"),
        ({"consume_timestamp": "yesterday"}, "yyyyMMddHHmmss"),
        ({"message_model": "CHAOS"}, "CHAOS"),
        ({"profile": "v1"}, "profile 'v1'"),
        ({"client_ip": "here"}, "no IP address"),
    ],
)
def test_options_out_of_range_are_named(options: dict[str, object], words: str) -> None:
    with pytest.raises(ClientError, match=words):
        PushConsumer("G", ADDRESS, **options)  # type: ignore[arg-type]


def test_what_a_consumer_refuses_at_its_start() -> None:
    world = World()

    async def main() -> None:
        consumer = PushConsumer("G", ADDRESS, runtime=world.runtime())
        with pytest.raises(ClientError, match="messageListener is null"):
            await consumer.start()
        with pytest.raises(ClientError, match="started once"):
            await consumer.start()
        with pytest.raises(ClientError, match="illegal characters"):
            consumer.subscribe("a/b")
        with pytest.raises(ClientError, match="subscription exception"):
            consumer.subscribe("T", "||")

    world.run(main())


def _route(**queue: int) -> TopicRouteData:
    fields = {"read_queue_nums": 2, "write_queue_nums": 2, "perm": 6, **queue}
    return TopicRouteData(
        [QueueData("broker-a", **fields), QueueData("broker-s", **fields)],
        [BrokerData("C", "broker-a", {0: "a:1"}), BrokerData("C", "broker-s", {1: "s:1"})],
    )


def test_producers_use_only_masters_with_write_permission() -> None:
    assert publish_queues("T", _route(write_queue_nums=3)) == [Q0, Q1, MessageQueue("T", "broker-a", 2)]
    assert publish_queues("T", _route(perm=int(Perm.READ))) == []
    route = _route()
    route.order_topic_conf = "broker-a:1;broker-b:x"
    assert publish_queues("T", route) == [Q0]


def test_consumers_use_readable_queues_of_every_broker() -> None:
    queues = subscribe_queues("T", _route(read_queue_nums=1))
    assert queues == [Q0, MessageQueue("T", "broker-s", 0)]
    assert subscribe_queues("T", _route(perm=int(Perm.WRITE))) == []


def test_the_template_gives_no_more_queues_than_asked_for() -> None:
    route = template_route(_route(read_queue_nums=8, write_queue_nums=8), 4)
    assert {data.write_queue_nums for data in route.queue_datas} == {4}


def test_a_failed_broker_is_passed_over_where_there_is_another() -> None:
    other = MessageQueue("T", "broker-b", 0)
    info = PublishInfo([Q0, Q1, other], 0)
    assert {info.select("broker-a") for _ in range(5)} == {other}
    assert PublishInfo([Q0], 0).select("broker-a") == Q0


@pytest.mark.parametrize("profile", list(Profile))
def test_the_local_offset_file(tmp_path: Path, profile: Profile) -> None:
    world = World()

    async def main() -> None:
        instance = ClientInstance(world.runtime(), make_config(ADDRESS, profile=profile, instance_name="i"))
        store = LocalFileOffsetStore(instance, "G", tmp_path)
        path = tmp_path / "127.0.0.1@i" / "G" / "offsets.json"
        await store.load()
        assert await store.read(Q0) == -1
        store.update(Q0, 5, increase_only=False)
        store.update(Q1, 7, increase_only=False)
        await store.persist(Q0)
        assert path.exists() is (profile is Profile.V53)
        await store.persist_all([Q0, Q1])
        store.update(Q0, 6, increase_only=True)
        await store.persist_all([Q0])
        fresh = LocalFileOffsetStore(instance, "G", tmp_path)
        await fresh.load()
        # Only 5.2 and later keep what the file said of queues that are not owned now.
        kept = {Q0: 6, Q1: 7} if profile is Profile.V53 else {Q0: 6}
        assert fresh.offsets() == kept
        path.write_text("{not json")
        damaged = LocalFileOffsetStore(instance, "G", tmp_path)
        await damaged.load()
        assert damaged.offsets() == {Q0: 5, Q1: 7}
        store.update(Q0, 99, increase_only=False)
        await store.remove(Q0)
        assert store.read_memory(Q0) == (-1 if profile is Profile.V53 else 99)
        await instance.remoting.close()

    world.run(main())


def test_offsets_in_memory() -> None:
    world = World()

    async def main() -> None:
        instance = ClientInstance(world.runtime(), make_config(ADDRESS, instance_name="i"))
        store = RemoteOffsetStore(instance, "G")
        store.update(Q0, 5, increase_only=True)
        store.update(Q0, 3, increase_only=True)
        assert store.read_memory(Q0) == 5
        store.update(Q0, 3, increase_only=False)
        assert store.read_memory(Q0) == 3
        store.update_and_freeze(Q0, 1)
        store.update(Q0, 9, increase_only=False)
        assert store.read_memory(Q0) == 1
        store.forget(Q0)
        store.update(Q0, 9, increase_only=False)
        assert store.read_memory(Q0) == 9
        await instance.remoting.close()

    world.run(main())


def test_retired_start_names_mean_the_last_offset() -> None:
    consumer = PushConsumer("G", ADDRESS, consume_from_where="CONSUME_FROM_MIN_OFFSET")  # type: ignore[arg-type]
    assert consumer.options.consume_from_where is ConsumeFromWhere.CONSUME_FROM_MIN_OFFSET


@dataclass
class _Known:
    """What a broker knows about a queue of any topic."""

    stored: int

    async def stored_offset(self, queue: MessageQueue) -> int:
        return self.stored

    async def max_offset(self, queue: MessageQueue) -> int:
        return 50

    async def search_offset(self, queue: MessageQueue, timestamp: int) -> int:
        return timestamp


@pytest.mark.parametrize(
    ("where", "topic", "stored", "expected"),
    [
        (ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET, "T", -1, 50),
        (ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET, "%RETRY%G", -1, 0),
        *(
            (retired, topic, -1, expected)
            for retired in (
                ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST,
                ConsumeFromWhere.CONSUME_FROM_MIN_OFFSET,
                ConsumeFromWhere.CONSUME_FROM_MAX_OFFSET,
            )
            for topic, expected in (("T", 50), ("%RETRY%G", 0))
        ),
        (ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, "T", -1, 0),
        (ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, "%RETRY%G", -1, 0),
        (ConsumeFromWhere.CONSUME_FROM_TIMESTAMP, "T", -1, 17),
        (ConsumeFromWhere.CONSUME_FROM_TIMESTAMP, "%RETRY%G", -1, 50),
        *((where, topic, 0, 0) for where in ConsumeFromWhere for topic in ("T", "%RETRY%G")),
        *((where, topic, 9, 9) for where in ConsumeFromWhere for topic in ("T", "%RETRY%G")),
    ],
)
async def test_where_a_queue_begins(where: ConsumeFromWhere, topic: str, stored: int, expected: int) -> None:
    """The table of docs/spec/client.md C.9."""
    assert await start_offset(MessageQueue(topic, "broker-a", 0), where, 17, _Known(stored)) == expected
