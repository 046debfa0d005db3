"""Start and stop of the experiment's processes and clients."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

from rewindmq.client.admin.admin_client import AdminClient
from rewindmq.client.pull.pull_consumer import PullConsumer
from rewindmq.cluster.async_cluster import AsyncLocalCluster
from rewindmq.cluster.demo.display import Display
from rewindmq.cluster.demo.journal import DemoJournal
from rewindmq.cluster.demo.names import (
    BROKERS,
    CONSUMER_GROUP,
    QUEUES,
    QUEUES_PER_BROKER,
    REPLAY_GROUP,
    TOPIC,
)
from rewindmq.cluster.demo.processes import ConsumerWorker, ProducerWorker, WorkerOptions
from rewindmq.cluster.demo.report import DemoReport
from rewindmq.cluster.demo.stage import DemoOptions, DemoStage
from rewindmq.cluster.demo.timeline import AdminStep
from rewindmq.cluster.local_cluster import LocalCluster
from rewindmq.protocol.body.registration import TopicConfig
from rewindmq.protocol.command import SerializeType
from rewindmq.protocol.errors import ResponseError
from rewindmq.protocol.points import Point
from rewindmq.protocol.remoting.runtime import SystemClock, system_runtime

_CONSUMERS: Final = ("consumer-1", "consumer-2")


@asynccontextmanager
async def open_stage(options: DemoOptions, display: Display, report: DemoReport) -> AsyncIterator[DemoStage]:
    """Start cluster, producer and consumers, and stop them all at the end of the block.

    Raises:
        ClusterError: a process did not start.
        RewindMQError: the cluster refused a request.
    """
    cluster = LocalCluster(
        BROKERS,
        directory=options.directory,
        time_scale=options.time_scale,
        profile=options.profile,
    )
    async with AsyncExitStack() as exits:
        with display.step("start 1 name server, 2 brokers", 1 + BROKERS) as advance:
            running = await exits.enter_async_context(cluster)
            advance(1 + BROKERS)
        stage = await _open_clients(exits, options, running, display, report)
        with display.step("start 1 producer, 2 consumers", 1 + len(_CONSUMERS)) as advance:
            await _wait_ready(stage)
            advance(1 + len(_CONSUMERS))
        yield stage


async def _open_clients(
    exits: AsyncExitStack,
    options: DemoOptions,
    cluster: AsyncLocalCluster,
    display: Display,
    report: DemoReport,
) -> DemoStage:
    steps: list[AdminStep] = []
    runtime = system_runtime(probe=_admin_probe(steps))
    exits.callback(runtime.workers.close)
    # Heartbeats must come at the brokers' time scale.
    scaled = system_runtime(time_scale=options.time_scale)
    exits.callback(scaled.workers.close)
    address = cluster.namesrv_address
    journal = DemoJournal()
    workers = WorkerOptions(address, options.time_scale, options.profile, cluster.directory / "logs")
    admin = await exits.enter_async_context(
        AdminClient(address, runtime=runtime, profile=options.profile, serialize_type=SerializeType.MSGPACK)
    )
    topic = TopicConfig(
        topic_name=TOPIC, read_queue_nums=QUEUES_PER_BROKER, write_queue_nums=QUEUES_PER_BROKER
    )
    for broker in cluster.brokers.values():
        await admin.topics.create_and_update_topic_config(broker.address, topic)
    # Entering a worker only starts its process, so all workers load at the same time.
    producer = await exits.enter_async_context(ProducerWorker(workers))
    consumers = [
        await exits.enter_async_context(ConsumerWorker(name, workers, journal)) for name in _CONSUMERS
    ]
    puller = await exits.enter_async_context(
        PullConsumer(
            REPLAY_GROUP,
            address,
            runtime=scaled,
            profile=options.profile,
            serialize_type=SerializeType.MSGPACK,
        )
    )
    report.processes.update(
        {
            "namesrv": cluster.namesrv.pid,
            **{name: broker.pid for name, broker in cluster.brokers.items()},
            **{worker.name: worker.pid for worker in (producer, *consumers)},
        }
    )
    return DemoStage(
        options, cluster, display, report, runtime, admin, puller, producer, consumers, journal, steps
    )


async def _wait_ready(stage: DemoStage) -> None:
    """Wait until each worker is connected, each broker has the topic and the group has both consumers."""

    async def is_ready() -> bool:
        if not all(worker.is_ready for worker in (stage.producer, *stage.consumers)):
            return False
        try:
            if len(await stage.ends()) < QUEUES:
                return False
            group = await stage.admin.groups.examine_consumer_connection_info(CONSUMER_GROUP)
        except ResponseError:
            # The topic has no route yet, or the group has no consumer.
            return False
        return len(group.connection_set) == len(stage.consumers)

    await stage.wait_until("the consumers to join their group", is_ready)


def _admin_probe(steps: list[AdminStep]) -> Any:
    clock = SystemClock()
    names = {
        Point.ROUTE_QUERIED: "the name server returned the route",
        Point.RESET_SENT: "reset sent to {broker}",
        Point.RESET_ANSWERED: "{broker} returned the targets",
    }

    def probe(point: Point, details: dict[str, Any]) -> None:
        if point in names:
            steps.append(AdminStep(names[point].format_map(details), clock.now_ms()))

    return probe
