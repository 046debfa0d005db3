"""Clients that a cluster makes, and clients whose time scale is not the cluster's."""

from __future__ import annotations

import asyncio
import inspect
import logging
import pydoc
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from rewindmq import (
    AsyncLocalCluster,
    ConsumeConcurrentlyStatus,
    LocalCluster,
    LocalTransactionState,
    Message,
    MessageExt,
    Producer,
    Profile,
)
from rewindmq.client.core.profile import CLIENT_PROFILES
from rewindmq.cluster.clients import ClusterClients
from rewindmq.race.sim import World

SCALE = 0.05


class StubCluster(ClusterClients):
    """A stand-in for a cluster, which starts no process."""

    def __init__(self, **options: Any) -> None:
        self._options = options

    @property
    def namesrv_address(self) -> str:
        return "127.0.0.1:1"

    @property
    def client_options(self) -> Mapping[str, Any]:
        return self._options


class Undecided:
    """A transaction listener that returns no state."""

    def execute_local_transaction(self, message: Message, arg: Any) -> LocalTransactionState | None:
        return None

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState | None:
        return None


def test_clients_inherit_name_server_time_scale_and_profile() -> None:
    cluster = StubCluster(time_scale=0.5, profile=Profile.V53)
    clients = [
        cluster.producer("G"),
        cluster.transaction_producer("G", listener=Undecided()),
        cluster.push_consumer("G"),
        cluster.pull_consumer("G"),
        cluster.lite_pull_consumer("G"),
    ]
    for client in clients:
        assert client.config.namesrv_addrs == ("127.0.0.1:1",)
        assert client.config.profile.release is Profile.V53
        assert client.runtime is clients[0].runtime
    assert cluster.admin().runtime is clients[0].runtime
    assert cluster.admin().profile.release is Profile.V53
    assert clients[0].runtime.clock.scale == 0.5


def test_options_of_a_client_override_those_of_the_cluster() -> None:
    cluster = StubCluster(time_scale=0.5, profile=Profile.V53, seed=1)
    consumer = cluster.push_consumer("G", profile="epoch", pull_batch_size=7)
    assert consumer.config.profile is CLIENT_PROFILES[Profile.EPOCH]
    assert consumer.options.pull_batch_size == 7
    runtime = World().runtime()
    assert cluster.producer("G", runtime=runtime).runtime is runtime


def test_clients_inherit_the_seed() -> None:
    cluster = StubCluster(seed=7)
    assert cluster.admin().runtime.random.random() == cluster.admin().runtime.random.random()


def test_a_local_cluster_lists_the_options_that_its_clients_inherit() -> None:
    assert LocalCluster(time_scale=SCALE).client_options == {"time_scale": SCALE, "profile": Profile.V49}
    seeded = LocalCluster(profile="v42", seed=3)
    assert seeded.client_options == {"time_scale": 1.0, "profile": Profile.V42, "seed": 3}
    assert AsyncLocalCluster(seeded).client_options == seeded.client_options


def test_help_shows_parameters_and_result_of_the_methods() -> None:
    signature = inspect.signature(LocalCluster.push_consumer)
    assert str(signature) == "(self, group: 'str', /, **options: 'Any') -> 'rewindmq.PushConsumer'"
    assert "Create a ``PushConsumer`` of a group." in pydoc.plain(pydoc.render_doc(LocalCluster))


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(brokers=1, time_scale=SCALE, seed=5) as cluster:
        yield cluster


async def test_worker_threads_end_with_the_last_client(cluster: LocalCluster) -> None:
    """A plain listener runs on a worker thread."""
    before = set(threading.enumerate())
    loop = asyncio.get_running_loop()
    came: asyncio.Future[str] = loop.create_future()

    def listener(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        loop.call_soon_threadsafe(came.set_result, threading.current_thread().name)
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    consumer = cluster.push_consumer("G", consume_from="first")
    consumer.subscribe("Once")
    consumer.register_message_listener(listener)
    async with cluster.producer("P") as producer, cluster.admin(), consumer:
        await producer.send(Message("Once", b"x"))
        assert "rewindmq-worker" in await asyncio.wait_for(came, 60)
        assert producer.client_id != consumer.client_id

    started = set(threading.enumerate()) - before
    workers = [thread for thread in started if "rewindmq-worker" in thread.name]
    for worker in workers:
        # The listener's thread may be a moment behind its last line.
        worker.join(60)
    assert not [worker.name for worker in workers if worker.is_alive()]


class Warnings(logging.Handler):
    """A log handler that stores warnings and sets ``came`` at the first."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []
        self.came = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())
        self.came.set()


async def test_a_client_with_another_time_scale_logs_one_warning(cluster: LocalCluster) -> None:
    log, warnings = logging.getLogger("rewindmq.client.core.instance"), Warnings()
    broker = cluster.brokers["broker-a"].address
    log.addHandler(warnings)
    try:
        async with Producer("slow", cluster.namesrv_address) as producer:
            await producer.send(Message("Scaled", b"x"))
            await asyncio.wait_for(warnings.came.wait(), 60)
            await producer.instance.send_heartbeats()
            [text] = warnings.texts
            client = producer.client_id
            assert text.startswith(
                f"broker broker-a at {broker} uses time scale 0.05, but client {client} uses 1.0, so"
            )
            assert text.endswith("give the client the option time_scale=0.05")
    finally:
        log.removeHandler(warnings)


async def test_a_client_with_the_same_time_scale_logs_no_warning(
    cluster: LocalCluster, caplog: pytest.LogCaptureFixture
) -> None:
    async with cluster.producer("fitting") as producer:
        await producer.send(Message("Scaled", b"x"))
        await producer.instance.send_heartbeats()
    assert "time scale" not in caplog.text
