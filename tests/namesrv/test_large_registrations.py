"""Registrations with many topics: a worker decodes them, and they take effect in order."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from rewindmq.namesrv.config import NamesrvConfig
from rewindmq.namesrv.server import NameServer
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.remoting.runtime import system_runtime
from tests.support.hand_workers import HandWorkers
from tests.support.peer import Peer
from tests.support.stage import ServerStage

MANY = tuple(f"topic-{number}" for number in range(2_000))


async def started(stage: ServerStage) -> tuple[HandWorkers, Peer, Peer]:
    """A name server whose workers wait for the test, with two connections."""
    workers = HandWorkers()
    namesrv = NameServer(replace(system_runtime(), workers=workers), NamesrvConfig(listen_port=0))
    await namesrv.start()
    stage.at_exit(namesrv.close)
    return workers, stage.peer(address=namesrv.address), stage.peer("c2", address=namesrv.address)


async def test_others_are_served_while_a_worker_decodes(stage: ServerStage) -> None:
    workers, broker, client = await started(stage)
    registering = asyncio.ensure_future(broker.register(topics=MANY))
    assert (await client.find_route("T")).code == ResponseCode.TOPIC_NOT_EXIST
    await broker.cluster_info()
    assert len(workers.jobs) == 1
    assert (await client.cluster_info()).broker_addr_table == {}
    await workers.finish()
    (await registering).require_success()
    assert (await client.route("topic-1999")).queue_datas[0].read_queue_nums == 4


async def test_a_small_registration_waits_for_a_large_one_of_before(stage: ServerStage) -> None:
    workers, broker, client = await started(stage)
    first = asyncio.ensure_future(broker.register(topics=MANY, version=(1, 1)))
    await broker.cluster_info()
    second = asyncio.ensure_future(broker.register(topics=("T",), version=(2, 2), queues=7))
    await broker.cluster_info()
    for registering in (first, second):
        await workers.finish()
        (await registering).require_success()
        await broker.cluster_info()
    assert (await client.route("T")).queue_datas[0].read_queue_nums == 7
    # Nothing waits any more: it takes effect at once.
    (await broker.register(topics=("T",), version=(3, 3), queues=8)).require_success()
    assert (await client.route("T")).queue_datas[0].read_queue_nums == 8


async def test_a_broker_that_hangs_up_meanwhile_is_not_registered(stage: ServerStage) -> None:
    workers, broker, client = await started(stage)
    registering = asyncio.ensure_future(broker.register(topics=MANY))
    await broker.cluster_info()
    registering.cancel()
    await broker.client.close()
    (await client.register("10.0.0.3:1", name="broker-b", topics=())).require_success()
    await workers.finish()
    assert list((await client.cluster_info()).broker_addr_table) == ["broker-b"]


async def test_brokers_that_hang_up_meanwhile_occupy_one_thread(stage: ServerStage) -> None:
    workers, broker, client = await started(stage)
    registering = asyncio.ensure_future(broker.register(topics=MANY))
    await broker.cluster_info()
    registering.cancel()
    await broker.client.close()
    later = asyncio.ensure_future(client.register("10.0.0.3:1", name="broker-b", topics=MANY))
    await client.cluster_info()
    assert len(workers.jobs) == 1
    # Its error is nobody's.
    future, _ = workers.jobs.pop()
    future.set_exception(ValueError("the body of a broker that has hung up"))
    await client.cluster_info()
    await workers.finish()
    (await later).require_success()
    assert list((await client.cluster_info()).broker_addr_table) == ["broker-b"]


@pytest.mark.parametrize("crc", [1, 2])
async def test_a_refusal_on_the_worker_reaches_the_broker(stage: ServerStage, crc: int) -> None:
    workers, broker, _ = await started(stage)
    registering = asyncio.ensure_future(broker.register(topics=MANY, crc=crc))
    await broker.cluster_info()
    future, job = workers.jobs.pop()
    with pytest.raises(Exception, match="crc32 not match") as refusal:
        job()
    future.set_exception(refusal.value)
    answer = await registering
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, "crc32 not match")
