"""Base class of all stages: the journal, the operator, the proxies and the waiting."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from rewindmq.client.core.remedy import Remedy, remedied
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.history import Event, Kind, Lab
from rewindmq.race.proxy.frame_proxy import FrameProxy
from rewindmq.race.proxy.pattern import FramePattern, HoldHandle
from rewindmq.race.stage.application import PollingApplication
from rewindmq.race.stage.journal import Journal
from rewindmq.race.stage.operator import Operator
from rewindmq.race.stage.reader import PullingReader
from rewindmq.race.stage.stage import BROKER, StageConsumer, consumer_process


class BaseStage:
    """The part of ``Stage`` that does not depend on how processes are run.

    Args:
        lab: the laboratory's own runtime; its clock is that of the history.
        patience: lower bound of every wait's timeout, in protocol seconds.
        remedy: added to the profile of the group's consumers.

    Attributes:
        consumers: the latest consumer of each name.
    """

    is_held = False
    _proxy_host = "127.0.0.1"

    def __init__(
        self,
        lab: Runtime,
        profile: Profile,
        mode: ResetMode,
        patience: float = 0.0,
        remedy: Remedy | None = None,
    ) -> None:
        self.profile = profile
        self.remedy = remedy
        self.knows_epochs = remedied(profile, remedy).knows_epochs
        self.mode = mode
        self._lab = lab
        self._patience = patience
        self._journal = Journal(lab, patience)
        self.history = self._journal.history
        self.consumers: dict[str, StageConsumer] = {}
        self._operator: Operator
        self._namesrv = ""
        self._proxies: dict[str, FrameProxy] = {}
        self._started_proxies: set[str] = set()
        self._starts: Counter[str] = Counter()
        self._readers: list[PullingReader | PollingApplication] = []
        self._pending: set[asyncio.Task[None]] = set()

    @property
    def now(self) -> float:
        return self._journal.now

    async def sleep(self, seconds: float) -> None:
        await self._lab.timers.sleep(seconds)

    async def send(self, count: int, *, queue: int = 0, broker: str = BROKER, tag: str = "") -> None:
        """See ``Stage``."""
        await self._operator.send(count, MessageQueue(self._operator.topic, broker, queue), tag)

    async def reader(self, name: str) -> PullingReader:
        """See ``Stage``."""
        reader = PullingReader(name, self._journal, self._lab, self._namesrv, self.profile.release)
        self._readers.append(reader)
        await reader.start()
        return reader

    async def application(self, name: str) -> PollingApplication:
        """See ``Stage``."""
        application = PollingApplication(
            name, self._journal, self._lab, self._namesrv, self.profile, self.remedy
        )
        self._readers.append(application)
        await application.start()
        return application

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
        work = self._operator.reset(
            offset, MessageQueue(self._operator.topic, broker, queue), is_direct=is_direct
        )
        if wait:
            await work
            return
        sent = len(self.history.of(Point.RESET_SENT))
        task = asyncio.get_running_loop().create_task(work)
        self._pending.add(task)
        task.add_done_callback(self._pending.discard)
        await self.until(Point.RESET_SENT, count=sent + 1)

    async def stored(self, *, queue: int = 0, broker: str = BROKER) -> int:
        """See ``Stage``."""
        return await self._operator.stored(MessageQueue(self._operator.topic, broker, queue))

    async def until(self, kind: Kind, *, seconds: float = 60.0, count: int = 1, **wanted: Any) -> Event:
        """See ``Stage``."""
        return await self._journal.until(kind, seconds=seconds, count=count, wanted=wanted)

    def hold(self, pattern: FramePattern, *, consumer: str) -> HoldHandle:
        """See ``Stage``."""
        return self._proxy(consumer).hold(pattern)

    def _proxy(self, consumer: str) -> FrameProxy:
        """Return the proxy between the servers and the consumers of this name."""
        if consumer not in self._proxies:
            self._proxies[consumer] = FrameProxy(
                self._lab,
                self._namesrv,
                self._record_frame,
                client_name=consumer_process(consumer),
                host=self._proxy_host,
            )
        return self._proxies[consumer]

    async def _proxy_address(self, consumer: str) -> str:
        """Start the consumer's proxy unless it runs; return the address to use as the name server's."""
        proxy = self._proxy(consumer)
        if consumer not in self._started_proxies:
            self._started_proxies.add(consumer)
            await proxy.start()
        return proxy.address

    def _record_frame(self, kind: Lab, process: str, details: dict[str, Any]) -> None:
        self._journal.add(Event(self.now, process, kind, details))

    def _instance_name(self, consumer: str) -> str:
        """Return a new instance name for each start, which sorts like the consumers' names."""
        self._starts[consumer] += 1
        count = self._starts[consumer]
        return consumer if count == 1 else f"{consumer}.{count}"

    async def _finish(self) -> None:
        """Close the journal, so that later events are not recorded, and end the readers."""
        self._journal.close()
        for task in self._pending:
            task.cancel()
        await asyncio.gather(*self._pending, return_exceptions=True)
        for reader in self._readers:
            await reader.close()

    async def _close_proxies(self) -> None:
        for proxy in self._proxies.values():
            await proxy.close()
