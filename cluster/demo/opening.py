"""Bringing the experiment's processes up, and all of them down again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

from rewindmq.client.admin.admin_client import AdminClient
from rewindmq.client.pull.pull_consumer import PullConsumer
from rewindmq.cluster.async_cluster import AsyncLocalCluster
from rewindmq.cluster.demo.display import Display
from rewindmq.cluster.demo.journal import Journal
from rewindmq.cluster.demo.names import (
    BROKERS,
    CONSUMER_GROUP,
    QUEUES,
    QUEUES_PER_BROKER,
    REPLAY_GROUP,
    TOPIC,
)
from rewindmq.cluster.demo.processes import ConsumerWorker, ProducerWorker, WorkerOptions
from rewindmq.cluster.demo.report import Report
from rewindmq.cluster.demo.stage import DemoOptions, Stage
from rewindmq.cluster.demo.timeline import AdminStep
from rewindmq.cluster.local_cluster import LocalCluster
from rewindmq.protocol.body.registration import TopicConfig
from rewindmq.protocol.command import SerializeType
from rewindmq.protocol.errors import ResponseError
from rewindmq.protocol.points import Point
from rewindmq.protocol.remoting.runtime import SystemClock, system_runtime

_CONSUMERS: Final = ("consumer-1", "consumer-2")


@asynccontextmanager
async def open_stage(options: DemoOptions, display: Display, report: Report) -> AsyncIterator[Stage]:
    """Start cluster, producer and consumers; whatever happens, none of them is left at the end.

    Raises:
        ClusterError: a process did not start.
        RewindMQError: the cluster refused something.
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
        stage = await _enter_clients(exits, options, running, display, report)
        with display.step("start 1 producer, 2 consumers", 1 + len(_CONSUMERS)) as advance:
            await _ready(stage)
            advance(1 + len(_CONSUMERS))
        yield stage


async def _enter_clients(
    exits: AsyncExitStack, options: DemoOptions, cluster: AsyncLocalCluster, display: Display, report: Report
) -> Stage:
    steps: list[AdminStep] = []
    runtime = system_runtime(probe=_admin_probe(steps))
    exits.callback(runtime.workers.close)
    # The brokers expect the heartbeats of a member at their own pace.
    scaled = system_runtime(time_scale=options.time_scale)
    exits.callback(scaled.workers.close)
    address = cluster.namesrv_address
    journal = Journal()
    workers = WorkerOptions(address, options.time_scale, options.profile, cluster.directory / "logs")
    admin = await exits.enter_async_context(
        AdminClient(address, runtime=runtime, profile=options.profile, serialize_type=SerializeType.MSGPACK)
    )
    topic = TopicConfig(
        topic_name=TOPIC, read_queue_nums=QUEUES_PER_BROKER, write_queue_nums=QUEUES_PER_BROKER
    )
    for member in cluster.brokers.values():
        await admin.create_and_update_topic_config(member.address, topic)
    # Both consumers load at the same time; awaiting a worker's start only launches it.
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
            **{name: member.pid for name, member in cluster.brokers.items()},
            **{worker.name: worker.pid for worker in (producer, *consumers)},
        }
    )
    return Stage(
        options, cluster, display, report, runtime, admin, puller, producer, consumers, journal, steps
    )


async def _ready(stage: Stage) -> None:
    """Wait until every worker is connected, the topic known everywhere and the group complete."""

    async def is_ready() -> bool:
        if not all(worker.is_ready for worker in (stage.producer, *stage.consumers)):
            return False
        try:
            if len(await stage.ends()) < QUEUES:
                return False
            members = await stage.admin.examine_consumer_connection_info(CONSUMER_GROUP)
        except ResponseError:
            # No route yet, or no member.
            return False
        return len(members.connection_set) == len(stage.consumers)

    await stage.wait_until("the consumers to join their group", is_ready)


def _admin_probe(steps: list[AdminStep]) -> Any:
    clock = SystemClock()
    names = {
        Point.ROUTE_QUERIED: "105 answered by the name server",
        Point.RESET_SENT: "222 sent to {broker}",
        Point.RESET_ANSWERED: "222 answered by {broker}",
    }

    def probe(point: Point, details: dict[str, Any]) -> None:
        if point in names:
            steps.append(AdminStep(names[point].format_map(details), clock.now_ms()))

    return probe
