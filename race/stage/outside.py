"""A stage on which the consumers, the cluster, or both are not RewindMQ's."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from rewindmq.client.admin.admin_client import AdminClient
from rewindmq.client.core.remedy import Remedy
from rewindmq.cluster.names import broker_names
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import ResponseError
from rewindmq.protocol.names import retry_topic
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.address import parse_address
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.errors import RaceError
from rewindmq.race.history import Event, Kind, Lab
from rewindmq.race.proxy.pattern import HoldHandle
from rewindmq.race.stage.foreign import ForeignConsumer, Outside, check_command
from rewindmq.race.stage.frame_points import FramePoints
from rewindmq.race.stage.processes import ProcessStage
from rewindmq.race.stage.stage import AT_ONCE, BROKER, GROUP, TOPIC, ListenerPlan, StageConsumer

_MASTER: Final = 0


class OutsideStage(ProcessStage):
    """A ``Stage`` that enforces the order by holding frames and infers points from frames.

    Args:
        time_scale: of RewindMQ's processes; other programs keep their own time.

    Raises:
        RaceError: the command or the address is invalid.
    """

    def __init__(
        self,
        profile: Profile,
        mode: ResetMode,
        outside: Outside,
        *,
        time_scale: float = 1.0,
        remedy: Remedy | None = None,
    ) -> None:
        super().__init__(profile, mode, time_scale=time_scale, is_held=True, remedy=remedy)
        self._outside = outside
        self._words = None if outside.client_command is None else check_command(outside.client_command)
        if outside.namesrv is not None:
            _check_address(outside.namesrv)
        self._points = FramePoints(
            of_consumers=self._words is not None, of_brokers=outside.namesrv is not None
        )
        self._foreign: list[ForeignConsumer] = []
        # From the scenario's broker names to the cluster's.
        self._real_names: dict[str, str] = {}

    async def __aexit__(self, *exception: object) -> None:
        """Stop every process that this stage has started."""
        self._journal.close()
        for consumer in self._foreign:
            await consumer.end()
        await super().__aexit__(*exception)

    async def open(
        self,
        *,
        brokers: int = 1,
        queues: int = 1,
        consumers: int = 1,
        broker_config: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """See ``Stage``; at a running cluster only create the topic, which stays there.

        Raises:
            RaceError: the cluster has too few brokers, or a race was played there before.
        """
        own_consumers = consumers if self._words is None else 0
        if self._outside.namesrv is None:
            await super().open(
                brokers=brokers, queues=queues, consumers=own_consumers, broker_config=broker_config
            )
            return
        if broker_config:
            keys = ", ".join(f"{key}={value}" for key, value in broker_config.items())
            self._journal.note("lab", Lab.NOTE, text=f"the race wants {keys}; this cluster stays as it is")
        self._spares = [await self._launch() for _ in range(own_consumers)]
        self._namesrv = self._outside.namesrv
        self._exits.push_async_callback(self._close_proxies)
        addresses = await self._find_brokers(brokers)
        await self._operator.open(self._namesrv)
        self._exits.push_async_callback(self._operator.close)
        await self._operator.create_topic(addresses, queues)

    async def consumer(
        self,
        name: str,
        *,
        listener: ListenerPlan = AT_ONCE,
        tags: str = "*",
        options: Mapping[str, Any] = MappingProxyType({}),
    ) -> StageConsumer:
        """See ``Stage``; a foreign client starts at its own speed."""
        if self._words is None:
            return await super().consumer(name, listener=listener, tags=tags, options=options)
        log_path = self._directory / f"client-{len(self._foreign)}.log"
        consumer = ForeignConsumer(name, self._words, self._journal, log_path)
        self._foreign.append(consumer)
        self.consumers[name] = consumer
        await consumer.start(await self._proxy_address(name), listener)
        return consumer

    async def send(self, count: int, *, queue: int = 0, broker: str = BROKER, tag: str = "") -> None:
        """See ``Stage``."""
        await super().send(count, queue=queue, broker=self._real_name(broker), tag=tag)
        for event in self.history.of(Lab.MESSAGE_SENT)[-count:]:
            self._points.read(event)

    async def reset(
        self,
        offset: int,
        *,
        queue: int = 0,
        broker: str = BROKER,
        wait: bool = True,
        is_direct: bool = False,
    ) -> None:
        """See ``Stage``."""
        await super().reset(
            offset, queue=queue, broker=self._real_name(broker), wait=wait, is_direct=is_direct
        )

    async def stored(self, *, queue: int = 0, broker: str = BROKER) -> int:
        """See ``Stage``."""
        return await super().stored(queue=queue, broker=self._real_name(broker))

    async def kill_broker(self, name: str = BROKER) -> None:
        """See ``Stage``; raise RaceError if the stage did not start the cluster."""
        self._require_own_cluster()
        await super().kill_broker(name)

    async def start_broker(self, name: str = BROKER) -> None:
        """See ``Stage``; raise RaceError if the stage did not start the cluster."""
        self._require_own_cluster()
        await super().start_broker(name)

    async def until(self, kind: Kind, *, seconds: float = 60.0, count: int = 1, **wanted: Any) -> Event:
        """See ``Stage``; raise RaceError for points that frames do not show."""
        try:
            return await super().until(kind, seconds=seconds, count=count, **wanted)
        except RaceError as error:
            unseen = _unseen(kind, outside=self._outside)
            if unseen is None:
                raise
            raise RaceError(f"{error}; of this {unseen} the laboratory sees only frames") from None

    def hold_stall(self, kind: Kind, *, consumer: str, **wanted: Any) -> HoldHandle:
        """See ``Stage``; raise RaceError for a client that is not RewindMQ's."""
        if self._words is not None:
            raise RaceError(
                "this race must stop the client between two steps, which needs RewindMQ's own client"
            )
        return super().hold_stall(kind, consumer=consumer, **wanted)

    def _record_frame(self, kind: Lab, process: str, details: dict[str, Any]) -> None:
        super()._record_frame(kind, process, details)
        for point in self._points.read(self.history[-1]):
            self._journal.add(point)

    def _real_name(self, broker: str) -> str:
        return self._real_names.get(broker, broker)

    def _require_own_cluster(self) -> None:
        if self._outside.namesrv is not None:
            raise RaceError("this race kills a broker; the laboratory kills only brokers that it has started")

    async def _find_brokers(self, count: int) -> list[str]:
        """Return the addresses of the cluster's first masters, which stand for ``broker-a``, ..."""
        async with AdminClient(self._namesrv, runtime=self._lab) as admin:
            # The group's offsets outlive the race's topic; its retry topic shows that they exist.
            for topic in (TOPIC, retry_topic(GROUP)):
                await self._require_absent(topic, admin)
            table = (await admin.brokers.examine_broker_cluster_info()).broker_addr_table
        masters = {
            name: data.broker_addrs[_MASTER]
            for name, data in sorted(table.items())
            if _MASTER in data.broker_addrs
        }
        if len(masters) < count:
            raise RaceError(f"this race needs {count} brokers, and {self._namesrv} knows {len(masters)}")
        self._real_names = dict(zip(broker_names(count), masters, strict=False))
        return list(masters.values())[:count]

    async def _require_absent(self, topic: str, admin: AdminClient) -> None:
        try:
            await admin.topics.examine_topic_route_info(topic)
        except ResponseError as error:
            if error.code != ResponseCode.TOPIC_NOT_EXIST:
                raise
        else:
            raise RaceError(
                f"{self._namesrv} already has the topic {topic}; a race needs a cluster without one,"
                " because offsets stay when a topic is deleted"
            )


def _unseen(kind: Kind, *, outside: Outside) -> str | None:
    """Return the foreign program, ``client`` or ``broker``, that would record such a point."""
    if str(kind).startswith("client.") and outside.client_command is not None:
        return "client"
    if str(kind).startswith("broker.") and outside.namesrv is not None:
        return "broker"
    return None


def _check_address(namesrv: str) -> None:
    try:
        parse_address(namesrv)
    except ValueError as error:
        raise RaceError(f"--namesrv: {error}") from None
