"""The stage for the laboratory's scenarios on which every consumer is an official Java client."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from rewindmq.client.admin.admin_client import AdminClient
from rewindmq.protocol.errors import ResponseError
from rewindmq.protocol.message.sysflag import PullSysFlag
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.runtime import system_runtime
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.errors import RaceError
from rewindmq.race.history import Event, History, Kind, Lab
from rewindmq.race.proxy.frame_proxy import FrameProxy
from rewindmq.race.proxy.pattern import FramePattern, HoldHandle
from rewindmq.race.stage.base import BaseStage
from rewindmq.race.stage.frame_points import FramePoints, without_inferred
from rewindmq.race.stage.operator import ADMIN, PRODUCER, Operator
from rewindmq.race.stage.settle import settle
from rewindmq.race.stage.stage import (
    AT_ONCE,
    BROKER,
    GROUP,
    TOPIC,
    ListenerPlan,
    StageConsumer,
    reader_process,
)
from tools.interop.races.chains import PULLS, STATUSES, with_chains
from tools.interop.races.cluster import RaceCluster
from tools.interop.races.java_consumers import JavaActor, JavaApplication, JavaConsumer, JavaReader
from tools.interop.races.names import NamedJournal, Names
from tools.interop.races.race_driver import RaceDriver
from tools.interop.races.watching_operator import WatchedReset
from tools.interop.raw import create_topic

if TYPE_CHECKING:
    from tools.interop.races.browser import ShownProof

# The least time that a wait must allow: many races run at a time on two cores.
_PATIENCE: Final = 100.0
_ASK_SECONDS: Final = 0.1
_COMMIT: Final = int(PullSysFlag.COMMIT_OFFSET)
_READERS: Final = reader_process("")

# Returns a driver; if called with True, a driver of its own, which can be killed.
DriverSource = Callable[[bool], Awaitable[RaceDriver]]


class JavaStage(BaseStage):
    """A ``Stage`` in real time, which delays the frames that a race needs late.

    Three sources show what happens. Consumers: their frames and their client's tables. A RocketMQ broker: the
    frames that reach it and the offsets that it returns. A RewindMQ broker: its points.

    Args:
        race: names the topic and the group.
        drivers: returns the driver in which a consumer lives.
        has_own_jvms: each consumer is in a JVM of its own.

    Attributes:
        operator_type: the administrator and producer of the race.
        watched: what the watcher of the last reset found; None without a watcher.
        shown: what the dashboard's page showed of the last reset; None without a browser.
    """

    is_held = True
    operator_type: type[Operator] = Operator
    watched: WatchedReset | None = None
    shown: ShownProof | None = None

    def __init__(
        self,
        race: str,
        profile: Profile,
        mode: ResetMode,
        cluster: RaceCluster,
        drivers: DriverSource,
        *,
        has_own_jvms: bool,
    ) -> None:
        lab = system_runtime()
        super().__init__(lab, profile, mode, _PATIENCE)
        self._names = Names.of(race)
        self._journal = NamedJournal(lab, _PATIENCE, self._names)
        self.history = self._journal.history
        self._cluster = cluster
        self._namesrv = cluster.namesrv_address
        self._drivers = drivers
        self._has_own_jvms = has_own_jvms
        self._operator = self.operator_type(
            self._journal,
            replace(lab, probe=self._journal.probe(ADMIN)),
            replace(lab, probe=self._journal.probe(PRODUCER)),
            profile=profile,
            mode=mode,
            topic=self._names.topic,
            group=self._names.group,
        )
        self._actors: list[JavaActor] = []
        self._without_resets: set[str] = set()
        # A RocketMQ broker that resets by itself ignores commits, so frames do not show which offset is
        # stored.
        self._asks_broker = cluster.kind.is_real and mode is ResetMode.SERVER
        self._points = FramePoints(of_consumers=False, of_brokers=cluster.kind.is_real)
        self._asking: dict[int, asyncio.Task[None]] = {}
        self._ask_again: set[int] = set()
        self._answers: dict[tuple[str, int], int] = {}
        self._watching: list[asyncio.Task[None]] = []

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[JavaStage]:
        """Open the stage until the race is over; then stop all consumers."""
        self._cluster.hearers.append(self._hear_broker)
        if self._cluster.kind.is_real:
            self._watching.append(asyncio.create_task(self._cluster.watch_offsets(self._see_offsets)))
        try:
            yield self
        finally:
            self._cluster.hearers.remove(self._hear_broker)
            await self._leave()

    async def open(
        self,
        *,
        brokers: int = 1,
        queues: int = 1,
        consumers: int = 1,
        broker_config: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """See ``Stage``; the cluster runs already, as it is."""
        if brokers != 1:
            raise RaceError("a race for real has one broker")
        await self._operator.open(self._namesrv)
        await asyncio.to_thread(create_topic, self._cluster.broker_address, self._names.topic, queues)
        await self._topic_known()

    async def consumer(
        self,
        name: str,
        *,
        listener: ListenerPlan = AT_ONCE,
        tags: str = "*",
        options: Mapping[str, Any] = MappingProxyType({}),
    ) -> StageConsumer:
        """See ``Stage``."""
        driver = await self._drivers(self._has_own_jvms)
        consumer = JavaConsumer(name, self._key(name), driver, self._journal)
        self.consumers[name] = consumer
        plan = {
            "seconds": listener.seconds,
            "slow": {str(offset): seconds for offset, seconds in listener.slow.items()},
            "blocked": sorted(listener.blocked),
            "again": listener.again,
        }
        # Where the driver keeps a broadcasting consumer's offsets is a setting of the whole JVM.
        plain = {key: value for key, value in options.items() if key != "offset_root"}
        await self._start(consumer, driver, "push", listener=plan, tags=tags, options=plain)
        if "offset_root" in options:
            self._watching.append(asyncio.create_task(self._watch_files(consumer.process, driver)))
        return consumer

    async def reader(self, name: str) -> JavaReader:  # type: ignore[override]
        """See ``Stage``."""
        driver = await self._drivers(False)
        reader = JavaReader(name, self._key(name), driver, self._journal)
        self._without_resets.add(reader.process)
        await self._start(reader, driver, "pull")
        return reader

    async def application(self, name: str) -> JavaApplication:  # type: ignore[override]
        """See ``Stage``."""
        driver = await self._drivers(False)
        application = JavaApplication(name, self._key(name), driver, self._journal)
        await self._start(application, driver, "lite")
        return application

    async def send(self, count: int, *, queue: int = 0, broker: str = BROKER, tag: str = "") -> None:
        """See ``Stage``."""
        before = len(self.history.of(Lab.MESSAGE_SENT))
        await super().send(count, queue=queue, broker=broker, tag=tag)
        for event in self.history.of(Lab.MESSAGE_SENT)[before:]:
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
        await super().reset(offset, queue=queue, broker=broker, wait=wait, is_direct=is_direct)
        refused = self.history.of(Lab.RESET_REFUSED)
        if refused:
            raise RaceError(f"the reset was not made: {refused[-1].details['remark']}")
        for _, queue_id, _ in self.history.of(Lab.RESET_ACKNOWLEDGED)[-1].details["targets"]:
            self._ask_broker(queue_id)

    async def kill_broker(self, name: str = BROKER) -> None:
        """See ``Stage``."""
        killed = Event(self.now, name, Lab.PROCESS_KILLED)
        await self._cluster.kill_broker()
        self._journal.add(killed)

    async def start_broker(self, name: str = BROKER) -> None:
        """See ``Stage``."""
        await self._cluster.start_broker()
        self._journal.note(name, Lab.PROCESS_STARTED)

    def hold(self, pattern: FramePattern, *, consumer: str) -> HoldHandle:
        """See ``Stage``."""
        return super().hold(self._names.as_sent(pattern), consumer=consumer)

    def hold_stall(self, kind: Kind, *, consumer: str, **wanted: Any) -> HoldHandle:
        """Raise RaceError: an unmodified client cannot be stopped between two of its steps."""
        raise RaceError("an unmodified client cannot be stopped between two steps, as this race needs")

    async def at_rest(self) -> None:
        """Wait until the judge sees everything that the race causes."""
        await settle(self)

    def judged(self) -> History:
        """Return the history for the judge: the observed events, every pull with its ProcessQueue."""
        observed = [
            event for event in without_inferred(self.history) if not self._is_pull_without_resets(event)
        ]
        return with_chains(observed)

    async def _start(self, actor: JavaActor, driver: RaceDriver, op: str, **fields: Any) -> None:
        self._actors.append(actor)
        instance = self._key(self._instance_name(actor.name))
        driver.hear(self._key(actor.name), self._hearer(actor.process))
        namesrv = await self._proxy_address_of(actor)
        names = {"topic": self._names.topic, "group": self._names.group}
        await actor.start(op, namesrv=namesrv, instance=instance, **names, **fields)
        await self.until(
            Lab.FRAME_ARRIVED, name="HEART_BEAT", form="response", target=actor.process, response_code=0
        )

    async def _proxy_address_of(self, actor: JavaActor) -> str:
        if not actor.process.startswith(_READERS):
            return await self._proxy_address(actor.name)
        proxy = FrameProxy(self._lab, self._namesrv, self._record_frame, client_name=actor.process)
        self._proxies[actor.process] = proxy
        await proxy.start()
        return proxy.address

    def _key(self, name: str) -> str:
        """Return a name that is unique among all races, in the same order as the given names."""
        return f"{name}~{self._names.group}"

    async def _topic_known(self) -> None:
        """Wait until the name server knows the topic: a RocketMQ broker registers it in its own time."""
        async with AdminClient(self._namesrv, runtime=self._lab) as admin, asyncio.timeout(_PATIENCE):
            while True:
                with contextlib.suppress(ResponseError):
                    await admin.topics.examine_topic_route_info(self._names.topic)
                    return
                await self.sleep(_ASK_SECONDS)

    # Recorded events.

    def _hearer(self, process: str) -> Callable[[str, float, dict[str, Any]], None]:
        def hear(kind: str, at: float, details: dict[str, Any]) -> None:
            if kind == Point.QUEUE_ADDED:
                # The watcher may see the queue after its offset has moved on; the queue began at the offset
                # that the broker returned.
                place = (process, details["queue_id"])
                details["offset"] = self._answers.pop(place, details["offset"])
            # An event of a message whose ProcessQueue is unknown has no chain.
            known = {"group": self._names.group, "chain": None, **details}
            self._journal.add(Event(self._journal.since_beginning(at), process, Point(kind), known))

        return hear

    def _hear_broker(self, process: str, value: dict[str, Any]) -> None:
        details = value["details"]
        if details.get("topic", self._names.topic) == self._names.topic:
            at = self._journal.since_beginning(value["at"])
            self._journal.add(Event(at, process, Point(value["kind"]), details))

    def _see_offsets(self, text: str) -> None:
        if re.search(rf'"{self._names.topic}@{self._names.group}"', text):
            self._journal.note(BROKER, Point.OFFSETS_FLUSHED, inferred=True)

    async def _watch_files(self, process: str, driver: RaceDriver) -> None:
        """Record each time a broadcasting consumer has written its offsets to a file, until cancelled."""
        before = [""]
        while True:
            texts = [path.read_text() for path in driver.offset_files]
            if any(texts) and texts != before:
                before = texts
                self._journal.note(process, Point.PERSIST_TICK, inferred=True)
            await self.sleep(_ASK_SECONDS)

    def _record_frame(self, kind: Lab, process: str, details: dict[str, Any]) -> None:
        event = self._names.as_laboratory(Event(self.now, process, kind, details))
        self._journal.add(event)
        if event.details.get("fields", {}).get("topic") != TOPIC:
            return
        for point in (*self._points.read(event), *_seen_of_client(event)):
            if point.kind is not Point.QUEUE_ADDED:
                self._journal.add(point)
        self._note_answer(event)
        if event.kind is Lab.FRAME_ARRIVED and _may_store(event):
            self._ask_broker(event.details["fields"]["queueId"])

    def _note_answer(self, event: Event) -> None:
        details = event.details
        is_answer = details["name"] == "QUERY_CONSUMER_OFFSET" and details["form"] == "response"
        if is_answer and event.kind is Lab.FRAME_ARRIVED and details["response_code"] == 0:
            self._answers[event.process, details["fields"]["queueId"]] = details["fields"]["offset"]

    def _ask_broker(self, queue: int) -> None:
        """Record the stored offset of a broker that does not report it itself."""
        if not self._asks_broker:
            return
        if queue in self._asking:
            self._ask_again.add(queue)
            return
        self._asking[queue] = asyncio.create_task(self._ask(queue))

    async def _ask(self, queue: int) -> None:
        try:
            offset = await self._operator.stored(MessageQueue(self._names.topic, BROKER, queue))
            details = {"group": GROUP, "topic": TOPIC, "queue_id": queue, "offset": offset}
            self._journal.note(BROKER, Point.OFFSET_QUERIED, **details)
        except Exception as error:
            self._journal.note("lab", Lab.NOTE, text=f"the broker did not say what is stored: {error}")
        del self._asking[queue]
        if queue in self._ask_again:
            self._ask_again.discard(queue)
            self._ask_broker(queue)

    def _is_pull_without_resets(self, event: Event) -> bool:
        """True for a pull of an application that keeps its offsets itself: resets do not concern it."""
        details = event.details
        return details.get("name") == "PULL_MESSAGE" and not self._without_resets.isdisjoint(
            (details["source"], details["target"])
        )

    async def _leave(self) -> None:
        self._journal.close()
        for task in (*self._asking.values(), *self._watching):
            task.cancel()
        await self._finish()
        for actor in self._actors:
            await actor.end()
        await self._close_proxies()
        await self._operator.close()
        self._lab.workers.close()


def _may_store(event: Event) -> bool:
    details = event.details
    if details["form"] == "response":
        return False
    is_flagged = details["fields"].get("sysFlag", 0) & _COMMIT
    return details["name"] == "UPDATE_CONSUMER_OFFSET" or (details["name"] in PULLS and bool(is_flagged))


def _seen_of_client(event: Event) -> list[Event]:
    """Return a client's points (pulls, commits) that a frame implies; the stage waits for such points."""
    details, fields = event.details, event.details["fields"]
    name, is_answer = details["name"], details["form"] == "response"
    if name in PULLS and event.kind is Lab.FRAME_SENT and not is_answer:
        return [_inferred(event, Point.PULL_SENT, fields["queueOffset"])]
    if name in PULLS and event.kind is Lab.FRAME_ARRIVED and is_answer:
        status = STATUSES.get(details["response_code"])
        following = fields.get("nextBeginOffset", fields["queueOffset"])
        return [] if status is None else [_inferred(event, Point.PULL_CALLBACK, following, status=status)]
    if name == "UPDATE_CONSUMER_OFFSET" and event.kind is Lab.FRAME_SENT and not is_answer:
        offset = fields["commitOffset"]
        return [_inferred(event, kind, offset) for kind in (Point.PERSIST_TICK, Point.COMMIT_SENT)]
    return []


def _inferred(event: Event, kind: Kind, offset: int, **more: Any) -> Event:
    fields = event.details["fields"]
    ends = {event.details["source"], event.details["target"]} - {event.process}
    details = {
        "topic": TOPIC,
        "group": GROUP,
        "broker_name": next(iter(ends), event.process),
        "queue_id": fields["queueId"],
        "offset": offset,
        "inferred": True,
        **more,
    }
    return Event(event.at, event.process, kind, details)
