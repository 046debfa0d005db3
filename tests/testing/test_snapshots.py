"""Snapshots: a restored cluster has exactly the messages, offsets and epochs of the snapshot."""

from __future__ import annotations

import hashlib
import os
import signal
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import rewindmq
from rewindmq import ClusterError, LocalCluster, LocalTransactionState, Message, MessageExt, testing
from rewindmq.cluster.async_cluster import run_in_thread
from rewindmq.cluster.server_process import ServerProcess
from rewindmq.cluster.snapshots import snapshots
from rewindmq.protocol.codec import fastjson
from rewindmq.testing import ClusterOptions, KitError, Rmq, Topic
from rewindmq.testing.clusters.cluster_pool import ClusterPool
from rewindmq.testing.clusters.servers import Servers

# Every restore starts all processes again, so the default group has one test of it.
SMALL = {
    "mappedFileSizeCommitLog": 65_536,
    "mappedFileSizeConsumeQueue": 2_000,
    "transactionTimeOut": 60_000_000,
}
small_cluster = testing.cluster(broker_config=SMALL)
small = testing.rmq("small_cluster")
STATE = ("consumerOffset.json", "delayOffset.json", "subscriptionGroup.json", "topics.json")


def folder_of(servers: Servers, name: str) -> Path:
    assert servers.local is not None
    return servers.local.directory / "snapshots" / name


def hashes(folder: Path) -> dict[Path, str]:
    return {
        path: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def state(folder: Path) -> dict[str, Any]:
    """The tables of a snapshot, and where its log and its queues end."""
    store = folder / "files" / "broker-a"
    paths = [store / "knownEnd.json", *(store / "config" / name for name in STATE)]
    return {path.name: fastjson.loads(path.read_bytes()) for path in paths}


async def fill(topic: Topic, count: int) -> None:
    """Send messages in batches that fit into a segment of 64 KiB."""
    for _ in range(count // 50):
        await topic.send_many([b"x" * 500] * 50)


class Undecided:
    """A transaction listener that neither commits nor rolls back."""

    def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        return LocalTransactionState.UNKNOW

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        return LocalTransactionState.UNKNOW


async def test_a_restore_takes_back_what_came_after_the_snapshot(small: Rmq, small_cluster: Servers) -> None:
    """Messages, stored offsets, epochs of fenced resets, delayed messages, and half messages."""
    orders = await small.topic("orders", queues=2)
    await fill(orders, 300)
    await orders.send(b"delivered", delay_level=1)
    await orders.send(b"in hours", delay_level=18)
    await small.eventually(lambda: _has(small, orders.name, b"delivered"))
    async with small.transaction_producer(Undecided()) as producer:
        await producer.send_message_in_transaction(Message(orders.name, b"half"))
    async with small.push("billing", orders) as billing:
        await billing.caught_up()
        await (await billing.reset(to="begin")).redelivered()
        await billing.caught_up()
    stored = await orders.read()
    await small.snapshot("backlog")
    before = hashes(folder_of(small_cluster, "backlog"))
    header = fastjson.loads((folder_of(small_cluster, "backlog") / "snapshot.json").read_bytes())
    assert (header["format"], header["storeFormat"], header["rewindmq"]) == (1, 1, rewindmq.__version__)

    await small.topic("later")
    await fill(orders, 300)
    async with small.push("billing", orders) as billing:
        await (await billing.reset(to="begin")).redelivered()
        await billing.caught_up()
    await small.kill("broker-a")
    await small.restart("broker-a")
    assert len(await orders.read()) == len(stored) + 300

    await small.restore("backlog")
    await small.snapshot("again")
    assert state(folder_of(small_cluster, "again")) == state(folder_of(small_cluster, "backlog"))
    assert await orders.read() == stored
    assert len(orders.sent) == 302
    sent = await orders.send(b"again")
    assert sent in await orders.read()
    assert hashes(folder_of(small_cluster, "backlog")) == before


async def _has(rmq: Rmq, topic: str, body: bytes) -> bool:
    stats = await rmq.admin.topics.examine_topic_stats(topic)
    for queue, entry in stats.offset_table.items():
        if (
            entry.max_offset
            and (await rmq.admin.messages.message_at(queue, entry.max_offset - 1)).body == body
        ):
            return True
    return False


@pytest.mark.slow
async def test_nothing_changes_a_snapshot() -> None:
    """Sends, retention, a new topic, a kill, a clean restart, and work after a restore."""
    # The broker deletes messages only when it is asked to: the hour is another one.
    hour = f"{(datetime.now().astimezone().hour + 12) % 24:02d}"
    config = SMALL | {"fileReservedTime": 0, "deleteWhen": hour}
    with LocalCluster(brokers=1, time_scale=0.05, broker_config=config) as cluster:
        servers = Servers(cluster.namesrv_address, cluster.client_options, cluster)
        async with Rmq(servers) as rmq:
            await _change_after_a_snapshot(rmq, servers, cluster.brokers["broker-a"])


async def _change_after_a_snapshot(rmq: Rmq, servers: Servers, broker: ServerProcess) -> None:
    oldest = broker.store_path / "commitlog" / ("0" * 20)
    orders = await rmq.topic("orders", queues=2)
    await fill(orders, 300)
    await rmq.snapshot("kept")
    before = hashes(folder_of(servers, "kept"))
    for _ in range(3):
        await fill(orders, 300)
        await rmq.kill("broker-a")
        await rmq.restart("broker-a")
        await fill(orders, 300)
        await rmq.restart("broker-a")
        await rmq.admin.brokers.delete_expired_commit_log(broker.address)
        await rmq.eventually(lambda: not oldest.exists())
        await (await rmq.topic("other")).send(b"x")
        assert hashes(folder_of(servers, "kept")) == before
        await rmq.restore("kept")
        assert len(await orders.read()) == 300
    assert hashes(folder_of(servers, "kept")) == before


@pytest.mark.slow
async def test_a_snapshot_is_saved_to_a_file_and_loaded_by_another_cluster(
    small: Rmq, tmp_path: Path
) -> None:
    orders = await small.topic("orders", queues=2)
    await fill(orders, 100)
    await small.snapshot("backlog")
    stored = await orders.read()
    path = tmp_path / "backlog.tar"
    await small.save_snapshot("backlog", path)
    async with LocalCluster(brokers=1, time_scale=0.05, broker_config=SMALL) as cluster:
        await cluster.load_snapshot("given", path)
        await cluster.restore("given")
        assert cluster.snapshots() == ["given"]
        async with cluster.admin() as admin:
            stats = await admin.topics.examine_topic_stats(orders.name)
            found = [
                (await admin.messages.message_at(queue, offset)).body
                for queue, entry in sorted(stats.offset_table.items())
                for offset in range(entry.max_offset)
            ]
    assert found == [message.body for message in stored]
    with pytest.raises(
        ClusterError, match="with mappedFileSizeCommitLog=65536, but this cluster has 1073741824"
    ):
        async with LocalCluster(brokers=1) as cluster:
            await cluster.load_snapshot("given", path)


@pytest.mark.slow
async def test_every_test_of_a_cluster_starts_from_its_snapshot(small: Rmq, tmp_path: Path) -> None:
    orders = await small.topic("orders", exact=True)
    await fill(orders, 50)
    await small.snapshot("backlog")
    await small.save_snapshot("backlog", tmp_path / "backlog.tar")
    options = ClusterOptions().with_changes({"broker_config": SMALL, "snapshot": tmp_path / "backlog.tar"})
    with ClusterPool() as pool:
        for _ in range(2):
            async with Rmq(await run_in_thread(lambda: pool.get(options))) as rmq:
                topic = await rmq.topic("orders", exact=True)
                assert len(await topic.read()) == 50
                await topic.send(b"more")


@pytest.mark.slow
async def test_a_slave_is_restored_with_its_master(tmp_path: Path) -> None:
    with LocalCluster(brokers=1, slaves=1, time_scale=0.05, broker_config=SMALL) as cluster:
        async with Rmq(Servers(cluster.namesrv_address, cluster.client_options, cluster)) as rmq:
            topic = await rmq.topic("orders", queues=1)
            await fill(topic, 100)
            await rmq.snapshot("backlog")
            await fill(topic, 100)
            await rmq.restore("backlog")
            await fill(topic, 50)
            async with rmq.down("broker-a"):
                pass
            assert len(await topic.read()) == 150


@pytest.mark.slow
async def test_a_paused_broker_refuses_a_snapshot_and_serves_afterwards(
    small: Rmq, small_cluster: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = await small.topic("orders")
    await small.snapshot("before")
    async with small.paused("broker-a"):
        with pytest.raises(ClusterError, match=r"^broker-a is paused: resume it"):
            await small.snapshot("during")
    # Paused from outside.
    os.kill(small_cluster.processes["broker-a"].pid, signal.SIGSTOP)
    monkeypatch.setattr(snapshots, "FREEZE_SECONDS", 0.2)
    with pytest.raises(ClusterError, match=r"^broker-a did not answer within 0.2 s"):
        await small.snapshot("during")
    os.kill(small_cluster.processes["broker-a"].pid, signal.SIGCONT)
    monkeypatch.undo()
    assert "during" not in small.snapshots
    sent = await topic.send(b"x")
    await small.snapshot("after")
    assert await topic.read() == [sent]
    assert {"before", "after"} <= set(small.snapshots)


@pytest.mark.slow
async def test_a_process_that_is_down_has_no_snapshot(small: Rmq) -> None:
    async with small.down("broker-a"):
        with pytest.raises(ClusterError, match="broker-a is not running: restart it before a snapshot"):
            await small.snapshot("half")


async def test_a_restore_below_running_consumers_is_refused(rmq: Rmq) -> None:
    topic = await rmq.topic("orders")
    async with rmq.push("billing", topic) as billing:
        with pytest.raises(KitError, match=f"while consumers of {billing.name} are running"):
            await rmq.restore("any")
        await billing.ready()


async def test_an_unknown_snapshot_and_a_wrong_name_are_refused(rmq: Rmq) -> None:
    with pytest.raises(ClusterError, match="there is no snapshot 'any'; snapshots: none"):
        await rmq.restore("any")
    for name in ("", ".", "../x", "a/b", "x" * 65):
        with pytest.raises(ClusterError, match="a snapshot's name has 1 to 64"):
            await rmq.snapshot(name)
    assert rmq.snapshots == []


async def test_a_running_cluster_has_no_snapshots(kit_cluster: Servers) -> None:
    elsewhere = Servers(kit_cluster.namesrv_address, kit_cluster.client_options)
    async with Rmq(elsewhere) as rmq:
        with pytest.raises(KitError, match="a snapshot needs a cluster of the kit's own"):
            await rmq.snapshot("any")
