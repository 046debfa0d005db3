"""A stage on which part of the cast is not ours: the consumers, the cluster, or both."""

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
from rewindmq.race.proxy.pattern import Hold
from rewindmq.race.stage.foreign import ForeignMember, Outside, check_command
from rewindmq.race.stage.frame_points import FramePoints
from rewindmq.race.stage.processes import ProcessStage
from rewindmq.race.stage.stage import AT_ONCE, BROKER, GROUP, TOPIC, ListenerPlan, Member

_MASTER: Final = 0


class OutsideStage(ProcessStage):
    """A ``Stage`` whose order is enforced by holding frames, and whose story is read from frames.

    Args:
        time_scale: of what is ours.

    Raises:
        RaceError: the command or the address cannot be used.
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
        self._foreign: list[ForeignMember] = []
        # The scenario's names of brokers, to those of the cluster.
        self._real_names: dict[str, str] = {}

    async def __aexit__(self, *exception: object) -> None:
        """Stop every process that was started here."""
        self._journal.close()
        for member in self._foreign:
            await member.end()
        await super().__aexit__(*exception)

    async def open(
        self,
        *,
        brokers: int = 1,
        queues: int = 1,
        members: int = 1,
        broker_config: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """See ``Stage``; at a cluster that is not ours only the topic is made, and stays.

        Raises:
            RaceError: that cluster has too few brokers, or has seen a race before.
        """
        own_members = members if self._words is None else 0
        if self._outside.namesrv is None:
            await super().open(
                brokers=brokers, queues=queues, members=own_members, broker_config=broker_config
            )
            return
        if broker_config:
            keys = ", ".join(f"{key}={value}" for key, value in broker_config.items())
            self._journal.note("lab", Lab.NOTE, text=f"this cluster is as it is; the race asks for {keys}")
        self._spares = [await self._launch() for _ in range(own_members)]
        self._namesrv = self._outside.namesrv
        self._exits.push_async_callback(self._close_proxies)
        addresses = await self._find_brokers(brokers)
        await self._operator.open(self._namesrv)
        self._exits.push_async_callback(self._operator.close)
        await self._operator.create_topic(addresses, queues)

    async def member(
        self,
        name: str,
        *,
        listener: ListenerPlan = AT_ONCE,
        tags: str = "*",
        options: Mapping[str, Any] = MappingProxyType({}),
    ) -> Member:
        """See ``Stage``; a foreign client goes about it at its own speed."""
        if self._words is None:
            return await super().member(name, listener=listener, tags=tags, options=options)
        log_path = self._directory / f"client-{len(self._foreign)}.log"
        member = ForeignMember(name, self._words, self._journal, log_path)
        self._foreign.append(member)
        self.members[name] = member
        await member.start(await self._proxy_address(name), listener)
        return member

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
        """RaceError at a cluster that is not ours."""
        self._require_own_cluster()
        await super().kill_broker(name)

    async def start_broker(self, name: str = BROKER) -> None:
        """RaceError at a cluster that is not ours."""
        self._require_own_cluster()
        await super().start_broker(name)

    async def until(self, kind: Kind, *, seconds: float = 60.0, count: int = 1, **wanted: Any) -> Event:
        """See ``Stage``; what frames do not show does not come."""
        try:
            return await super().until(kind, seconds=seconds, count=count, **wanted)
        except RaceError as error:
            unseen = _unseen(kind, outside=self._outside)
            if unseen is None:
                raise
            raise RaceError(f"{error}; of a {unseen} that is not ours only its frames are known") from None

    def hold_stall(self, kind: Kind, *, member: str, **wanted: Any) -> Hold:
        """RaceError for a client that is not ours."""
        if self._words is not None:
            raise RaceError(
                "a client that is not ours cannot be stopped between two steps, as this race needs"
            )
        return super().hold_stall(kind, member=member, **wanted)

    def _record_frame(self, kind: Lab, process: str, details: dict[str, Any]) -> None:
        super()._record_frame(kind, process, details)
        for point in self._points.read(self.history[-1]):
            self._journal.add(point)

    def _real_name(self, broker: str) -> str:
        return self._real_names.get(broker, broker)

    def _require_own_cluster(self) -> None:
        if self._outside.namesrv is not None:
            raise RaceError("this race kills a broker, and this cluster is not ours to kill")

    async def _find_brokers(self, count: int) -> list[str]:
        """The addresses of the first masters of the cluster, which take the parts of ``broker-a``, ..."""
        async with AdminClient(self._namesrv, runtime=self._lab) as admin:
            # The group's offsets outlive the race's topic; what tells of them is the group's own.
            for topic in (TOPIC, retry_topic(GROUP)):
                await self._require_absent(topic, admin)
            table = (await admin.examine_broker_cluster_info()).broker_addr_table
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
            await admin.examine_topic_route_info(topic)
        except ResponseError as error:
            if error.code != ResponseCode.TOPIC_NOT_EXIST:
                raise
        else:
            raise RaceError(
                f"{self._namesrv} has a topic {topic} already; a race needs a cluster that has seen none,"
                " for offsets stay when a topic is deleted"
            )


def _unseen(kind: Kind, *, outside: Outside) -> str | None:
    """Who of those that are not ours would have to tell of such a point."""
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
