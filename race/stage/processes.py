"""A stage on which every name server, broker and consumer is a process of its own, over real sockets."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Self

from rewindmq.client.core.remedy import Remedy
from rewindmq.cluster.async_cluster import AsyncLocalCluster
from rewindmq.cluster.local_cluster import LocalCluster
from rewindmq.cluster.names import broker_names
from rewindmq.protocol.files.temporary_folder import TemporaryFolder
from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.runtime import system_runtime
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.errors import RaceError
from rewindmq.race.history import Event, Kind, Lab
from rewindmq.race.proxy.pattern import FramePattern, HoldHandle
from rewindmq.race.stage.base import BaseStage
from rewindmq.race.stage.journal import Journal
from rewindmq.race.stage.operator import ADMIN, PRODUCER, Operator
from rewindmq.race.stage.point_pipe import PointPipe
from rewindmq.race.stage.stage import AT_ONCE, BROKER, ListenerPlan, StageConsumer, consumer_process
from rewindmq.race.stage.stall import StallHold
from rewindmq.race.stage.worker_process import WorkerProcess

# Lower bound of every wait's timeout, in real seconds: a busy machine may be slow.
_PATIENCE: Final = 20.0
_MILLISECOND: Final = 0.001


class _ProcessConsumer:
    """A consumer in a process of its own."""

    def __init__(
        self, name: str, worker: WorkerProcess, journal: Journal, stalls: Mapping[int, StallHold]
    ) -> None:
        self.name = name
        self.worker = worker
        self._process = consumer_process(name)
        self._journal = journal
        self._stalls = stalls

    async def start(self, settings: Mapping[str, Any]) -> None:
        self._journal.note(self._process, Lab.PROCESS_STARTED, profile=settings["profile"])
        await self.worker.begin(settings, self._hear)

    async def stop(self) -> None:
        await self.worker.order("stop")
        self._journal.note(self._process, Lab.PROCESS_STOPPED)
        await self.worker.end()

    async def kill(self) -> None:
        killed = Event(self._journal.now, self._process, Lab.PROCESS_KILLED)
        await self.worker.kill()
        self._journal.add(killed)

    async def suspend(self) -> None:
        await self.worker.order("suspend")

    async def resume(self) -> None:
        await self.worker.order("resume")

    async def release(self, offset: int) -> None:
        await self.worker.order("release", offset=offset)

    def _hear(self, value: dict[str, Any]) -> None:
        if "stalled" in value:
            self._stalls[value["stalled"]].catch()
        else:
            self._journal.add(_event(self._journal, self._process, value))


class ProcessStage(BaseStage):
    """A ``Stage`` of real processes; ``async with`` ends every process, however the race ends.

    Args:
        time_scale: factor on every wait of every process.
        is_held: put a proxy before every consumer; scenarios then do not rely on time.
    """

    def __init__(
        self,
        profile: Profile,
        mode: ResetMode,
        *,
        time_scale: float = 1.0,
        is_held: bool = False,
        remedy: Remedy | None = None,
    ) -> None:
        lab = system_runtime(time_scale=time_scale)
        super().__init__(lab, profile, mode, _PATIENCE / time_scale, remedy)
        self.is_held = is_held
        self._time_scale = time_scale
        self._operator = Operator(
            self._journal,
            replace(lab, probe=self._journal.probe(ADMIN)),
            replace(lab, probe=self._journal.probe(PRODUCER)),
            profile=profile,
            mode=mode,
            millisecond=_MILLISECOND / time_scale,
        )
        self._exits = AsyncExitStack()
        self._directory = Path()
        self._cluster: AsyncLocalCluster
        self._workers: list[WorkerProcess] = []
        self._spares: list[WorkerProcess] = []
        self._consumers: dict[str, _ProcessConsumer] = {}
        self._stalls: dict[str, list[dict[str, Any]]] = {}
        self._stall_holds: dict[int, StallHold] = {}

    async def __aenter__(self) -> Self:
        self._exits.callback(self._lab.workers.close)
        self._directory = self._exits.enter_context(TemporaryFolder("race-")).path
        return self

    async def __aexit__(self, *exception: object) -> None:
        """Stop every process; later events are not recorded."""
        await self._finish()
        for worker in self._workers:
            await worker.kill()
        await self._exits.aclose()

    async def open(
        self,
        *,
        brokers: int = 1,
        queues: int = 1,
        consumers: int = 1,
        broker_config: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """See ``Stage``."""
        for name in broker_names(brokers):
            self._open_pipe(name)
        self._spares = [await self._launch() for _ in range(consumers)]
        cluster = LocalCluster(
            brokers,
            directory=self._directory,
            time_scale=self._time_scale,
            profile=self.profile.release,
            broker_config={"resetMode": self.mode, **broker_config},
            events_directory=self._directory,
        )
        self._cluster = await self._exits.enter_async_context(cluster)
        self._namesrv = self._cluster.namesrv_address
        await self._operator.open(self._namesrv)
        self._exits.push_async_callback(self._operator.close)
        self._exits.push_async_callback(self._close_proxies)
        for name in self._cluster.brokers:
            self._journal.note(name, Lab.PROCESS_STARTED)
        addresses = [broker.address for broker in self._cluster.brokers.values()]
        await self._operator.create_topic(addresses, queues)

    async def consumer(
        self,
        name: str,
        *,
        listener: ListenerPlan = AT_ONCE,
        tags: str = "*",
        options: Mapping[str, Any] = MappingProxyType({}),
    ) -> StageConsumer:
        """See ``Stage``."""
        worker = self._spares.pop() if self._spares else await self._launch()
        consumer = _ProcessConsumer(name, worker, self._journal, self._stall_holds)
        self.consumers[name] = self._consumers[name] = consumer
        settings = {
            "namesrv": await self._entrance(name),
            "profile": self.profile,
            "remedy": self.remedy,
            "instance_name": self._instance_name(name),
            "listener": {
                "seconds": listener.seconds,
                "slow": dict(listener.slow),
                "blocked": sorted(listener.blocked),
                "again": listener.again,
            },
            "tags": tags,
            "options": dict(options),
            "stalls": self._stalls.get(name, []),
        }
        await consumer.start(settings)
        return consumer

    async def kill_broker(self, name: str = BROKER) -> None:
        killed = Event(self.now, name, Lab.PROCESS_KILLED)
        await self._cluster.kill(name)
        self._journal.add(killed)

    async def start_broker(self, name: str = BROKER) -> None:
        """See ``Stage``."""
        await self._cluster.restart(name)
        self._journal.note(name, Lab.PROCESS_STARTED)

    def hold(self, pattern: FramePattern, *, consumer: str) -> HoldHandle:
        """See ``Stage``."""
        if consumer in self._consumers and consumer not in self._proxies:
            raise RaceError(f"consumer {consumer} runs without a proxy: set the hold before it starts")
        return super().hold(pattern, consumer=consumer)

    def hold_stall(self, kind: Kind, *, consumer: str, **wanted: Any) -> HoldHandle:
        """See ``Stage``."""
        number = len(self._stall_holds)
        rule = {"number": number, "kind": kind, "wanted": wanted}

        def release() -> None:
            if consumer in self._consumers:
                self._consumers[consumer].worker.begin_order("go_on", number=number)
            self._stalls[consumer].remove(rule)

        self._stalls.setdefault(consumer, []).append(rule)
        hold = self._stall_holds[number] = StallHold(kind, self._lab.timers, release, self._patience)
        if consumer in self._consumers:
            self._consumers[consumer].worker.begin_order("stall", **rule)
        return hold

    async def _entrance(self, consumer: str) -> str:
        """Return the address that a consumer uses as the name server's: its proxy's, if it has one."""
        if not self.is_held and consumer not in self._proxies:
            return self._namesrv
        return await self._proxy_address(consumer)

    async def _launch(self) -> WorkerProcess:
        worker = WorkerProcess(self._directory / f"worker-{len(self._workers)}.log")
        self._workers.append(worker)
        await worker.launch(self._time_scale)
        return worker

    def _open_pipe(self, broker: str) -> None:
        def note(value: dict[str, Any]) -> None:
            self._journal.add(_event(self._journal, broker, value))

        pipe = PointPipe(self._directory / f"{broker}.jsonl", note)
        self._exits.callback(pipe.close)


def _event(journal: Journal, process: str, value: Mapping[str, Any]) -> Event:
    """Convert a point that another process has recorded to an event."""
    return Event(journal.since_beginning(value["at"]), process, Point(value["kind"]), value["details"])
