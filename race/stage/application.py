"""A lite pull consumer of the race's group and the application that polls it."""

from __future__ import annotations

from dataclasses import replace

from rewindmq.client.core.remedy import Remedy, remedied
from rewindmq.client.lite.lite_pull_consumer import LitePullConsumer
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.race.history import Lab
from rewindmq.race.stage.journal import Journal
from rewindmq.race.stage.stage import BROKER, GROUP, TOPIC, reader_process


class PollingApplication:
    """Implements ``Application``.

    Args:
        runtime: the runtime to run in; the application's events carry its own process name.
    """

    def __init__(
        self,
        name: str,
        journal: Journal,
        runtime: Runtime,
        namesrv: str,
        profile: Profile,
        remedy: Remedy | None,
    ) -> None:
        self.name = name
        self._process = reader_process(name)
        self._journal = journal
        self._consumer = LitePullConsumer(
            GROUP,
            namesrv,
            runtime=replace(runtime, probe=journal.probe(self._process)),
            profile=remedied(profile, remedy),
            instance_name=name,
        )
        self._consumer.subscribe(TOPIC)

    async def start(self) -> None:
        """Join the group and wait until the brokers know the consumer."""
        self._journal.note(self._process, Lab.PROCESS_STARTED)
        await self._consumer.start()
        await self._consumer.instance.send_heartbeats()

    async def poll(self, count: int) -> None:
        """See ``Application``."""
        while count > 0:
            count -= len(await self._consumer.poll())

    async def commit(self, *, queue: int = 0, broker: str = BROKER) -> None:
        """See ``Application``."""
        await self._consumer.commit([MessageQueue(TOPIC, broker, queue)], persist=True)

    async def stop(self) -> None:
        """See ``Application``."""
        await self.close()
        self._journal.note(self._process, Lab.PROCESS_STOPPED)

    async def close(self) -> None:
        """Leave the group; may be repeated."""
        await self._consumer.shutdown()
