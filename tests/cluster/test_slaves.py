"""Masters and slaves as processes, killed while the slave copies."""

from __future__ import annotations

import asyncio

import pytest

from rewindmq import AdminClient, LocalCluster, Message, Producer, SendStatus
from rewindmq.protocol.remoting.runtime import Timers, system_runtime
from tests.cluster.cluster_stage import BrokersAt
from tests.support.processes import WAIT_SECONDS

TIME_SCALE = 0.1
CONFIG = {"mappedFileSizeCommitLog": 1 << 20}


async def until_copied(admin: AdminClient, timers: Timers, master: str, slave: str) -> None:
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            ends = [
                (await admin.brokers.fetch_broker_runtime_stats(address))["commitLogMaxOffset"]
                for address in (master, slave)
            ]
            if ends[0] == ends[1] != "0":
                return
            await timers.sleep(1)


async def until_copying(admin: AdminClient, timers: Timers, slave: str) -> None:
    async with asyncio.timeout(WAIT_SECONDS):
        while (await admin.brokers.fetch_broker_runtime_stats(slave))["commitLogMaxOffset"] == "0":
            await timers.sleep(1)


@pytest.mark.slow(full_only="tests/broker/ha interrupts the copy in virtual time")
async def test_a_slave_and_a_master_killed_while_they_copy_have_the_same_log_in_the_end(
    brokers_at: BrokersAt,
) -> None:
    runtime = system_runtime(time_scale=TIME_SCALE)
    async with (
        LocalCluster(brokers=1, slaves=1, time_scale=TIME_SCALE, broker_config=CONFIG) as cluster,
        AdminClient(cluster.namesrv_address, runtime=runtime) as admin,
        Producer("p", cluster.namesrv_address, runtime=runtime) as producer,
    ):
        master, slave = cluster.brokers["broker-a"], cluster.slaves["broker-a-s1"]

        async def send(count: int) -> None:
            for number in range(count):
                assert (
                    await producer.send(Message("T", b"%d" % number * 2_000))
                ).status is SendStatus.SEND_OK

        sending = asyncio.ensure_future(send(2_000))
        await until_copying(admin, runtime.timers, slave.address)
        await cluster.kill("broker-a-s1")
        await cluster.restart("broker-a-s1")
        await sending
        await until_copied(admin, runtime.timers, master.address, slave.address)

        await send(200)
        await cluster.kill("broker-a")
        await cluster.restart("broker-a")
        await brokers_at(cluster.namesrv_address, {"broker-a"})
        await send(200)
        await until_copied(admin, runtime.timers, master.address, slave.address)
        await cluster.stop("broker-a")
        await cluster.stop("broker-a-s1")
        logs = [
            {path.name: path.read_bytes() for path in (broker.store_path / "commitlog").iterdir()}
            for broker in (master, slave)
        ]
        assert logs[0] == logs[1]
    runtime.workers.close()
