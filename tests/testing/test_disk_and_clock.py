"""Servers that act as if the disk were full or time had passed, with real processes."""

from __future__ import annotations

import pytest

from rewindmq import ClusterError, LocalTransactionState, Message, MessageExt, RewindMQError, testing
from rewindmq.testing import KitError, Rmq, Topic
from rewindmq.testing.clusters.servers import Servers

SMALL = {"mappedFileSizeCommitLog": 65_536, "mappedFileSizeConsumeQueue": 2_000}
small_cluster = testing.cluster(broker_config=SMALL)
small = testing.rmq("small_cluster")
HOURS = 3_600
RESERVED_HOURS = 72


async def test_a_broker_with_a_full_disk_refuses_messages_and_serves_the_rest(rmq: Rmq) -> None:
    orders = await rmq.topic("orders", queues=1)
    before = await orders.send(b"before")
    async with rmq.producer() as producer:
        await producer.send(Message(orders.name, b"first"))
        async with rmq.disk_full("broker-a"):
            with pytest.raises(RewindMQError, match=r"disk is full \[CL:  1\.00"):
                await producer.send(Message(orders.name, b"refused"), timeout=60)
            async with rmq.push("billing", orders) as billing:
                await billing.caught_up()
                assert before in billing.received
        await producer.send(Message(orders.name, b"after"))
    assert [message.body for message in await orders.read()] == [b"before", b"first", b"after"]


async def test_a_delayed_message_is_due_after_the_travel(rmq: Rmq) -> None:
    orders = await rmq.topic("orders", queues=1)
    # 2 hours, which are 6 minutes at the kit's time scale.
    await orders.send(b"later", delay_level=18)
    await rmq.travel(2 * HOURS - 600)
    await rmq.always(lambda: _is_empty(orders), within=20)
    await rmq.travel(600)
    await rmq.eventually(lambda: _has(orders, b"later"))


class Undecided:
    """A listener that decides when the broker asks."""

    def __init__(self) -> None:
        self.checks = 0

    def execute_local_transaction(self, message: Message, argument: object) -> LocalTransactionState:
        return LocalTransactionState.UNKNOW

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        self.checks += 1
        return LocalTransactionState.COMMIT_MESSAGE


patient_cluster = testing.cluster(
    broker_config={"transactionTimeOut": 10 * HOURS * 1_000, "transactionCheckInterval": 10 * HOURS * 1_000}
)
patient = testing.rmq("patient_cluster")


async def test_a_transaction_is_checked_after_the_travel(patient: Rmq) -> None:
    orders = await patient.topic("orders", queues=1)
    listener = Undecided()
    async with patient.transaction_producer(listener) as producer:
        await producer.send_message_in_transaction(Message(orders.name, b"half"))
        # The broker must know whom to ask: the next check is ten hours away.
        await producer.instance.send_heartbeats()
        await patient.travel(11 * HOURS)
        await patient.eventually(lambda: _has(orders, b"half"))
    assert listener.checks == 1


async def test_old_segments_are_deleted_after_the_travel(small: Rmq, small_cluster: Servers) -> None:
    orders = await small.topic("orders", queues=1)
    for _ in range(6):
        await orders.send_many([b"x" * 500] * 50)
    await orders.send(b"last")
    # RocketMQ's fileReservedTime is not scaled.
    await small.travel((RESERVED_HOURS + 1) * HOURS / small.time_scale)
    (master,) = (await small.admin.brokers.examine_broker_cluster_info()).broker_addr_table.values()
    await small.admin.brokers.delete_expired_commit_log(master.broker_addrs[0])
    await small.eventually(lambda: _begins_later(orders))
    assert [message.body for message in await orders.read()][-1] == b"last"


async def test_the_end_of_the_test_undoes_both(small_cluster: Servers) -> None:
    async with Rmq(small_cluster) as first:
        await first.travel(1_000 * HOURS)
        assert small_cluster.ahead_ms == round(1_000 * HOURS * 1_000 * first.time_scale)
        orders = await first.topic("orders", queues=1)
        await orders.send(b"of the future")
        await first.disk_full("broker-a").__aenter__()
        await first.kill("broker-a")
    assert small_cluster.ahead_ms == 0
    async with Rmq(small_cluster) as second:
        orders = await second.topic("orders", queues=1)
        mark = await second.mark()
        await orders.send(b"x")
        assert len(await orders.read()) == len(orders.since(mark)) == 1
        # Its time is the real one, because the store has no message of the future before it.
        async with second.push("billing", orders) as billing:
            await billing.caught_up()
            reset = await billing.reset(to=await second.mark())
            await billing.nothing_more(within=5)
            assert reset.delivered == []
        assert second.snapshots == []
        await orders.send(b"later", delay_level=18)
        await second.always(lambda: _has_only(orders, 1), within=20)


async def test_a_broker_that_starts_again_is_still_full_and_ahead(small: Rmq) -> None:
    orders = await small.topic("orders", queues=1)
    await orders.send(b"first")
    await small.travel(1 * HOURS)
    async with small.disk_full("broker-a"):
        async with small.down("broker-a"):
            pass
        with pytest.raises(RewindMQError, match="disk is full"):
            await orders.send(b"refused")
    mark = await small.mark()
    after = await orders.send(b"after")
    async with small.push("billing", orders) as billing:
        await billing.caught_up()
        reset = await billing.reset(to=mark)
        await reset.redelivered()
        assert reset.delivered == [after]


async def test_wrong_arguments_are_clear_errors(rmq: Rmq) -> None:
    for seconds in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(KitError, match=r"the seconds must be more than 0 and at most 315360000"):
            await rmq.travel(seconds)
    with pytest.raises(ClusterError, match=r"only a master's disk can be full: broker-a; not .*'namesrv'"):
        await rmq.disk_full("namesrv").__aenter__()
    async with rmq.paused("broker-a"):
        with pytest.raises(ClusterError, match="broker-a is paused"):
            await rmq.travel(1)
        with pytest.raises(ClusterError, match="broker-a is paused"):
            await rmq.disk_full("broker-a").__aenter__()
    await rmq.kill("broker-a")
    with pytest.raises(ClusterError, match="broker-a is not running"):
        await rmq.disk_full("broker-a").__aenter__()


async def test_a_running_cluster_has_neither(kit_cluster: Servers) -> None:
    async with Rmq(Servers(kit_cluster.namesrv_address, kit_cluster.client_options)) as rmq:
        with pytest.raises(KitError, match="travel needs a cluster of the kit's own"):
            await rmq.travel(1)
        with pytest.raises(KitError, match="disk_full needs a cluster of the kit's own"):
            await rmq.disk_full("broker-a").__aenter__()


async def _has(topic: Topic, body: bytes) -> bool:
    return body in [message.body for message in await topic.read()]


async def _is_empty(topic: Topic) -> bool:
    return await topic.read() == []


async def _has_only(topic: Topic, count: int) -> bool:
    return len(await topic.read()) == count


async def _begins_later(topic: Topic) -> bool:
    return (await topic.read())[0].offset > 0
