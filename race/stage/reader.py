"""A pull consumer of the race's group, whose application ignores resets."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from rewindmq.client.pull.pull_consumer import PullConsumer
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.race.history import Lab
from rewindmq.race.stage.journal import Journal
from rewindmq.race.stage.stage import BROKER, GROUP, TOPIC, reader_process

_MAX_MESSAGES: Final = 32


class PullingReader:
    """Implements ``Reader``.

    Args:
        runtime: the runtime to run in; the reader's events carry its own process name.
    """

    def __init__(self, name: str, journal: Journal, runtime: Runtime, namesrv: str, profile: Profile) -> None:
        self.name = name
        self._process = reader_process(name)
        self._journal = journal
        self._consumer = PullConsumer(
            GROUP,
            namesrv,
            runtime=replace(runtime, probe=journal.probe(self._process)),
            profile=profile,
            instance_name=name,
        )
        # Without this, the consumer's heartbeat would replace the group's subscriptions by an empty set.
        self._consumer.register_topic(TOPIC)

    async def start(self) -> None:
        """Join the group and wait until the brokers know the consumer."""
        self._journal.note(self._process, Lab.PROCESS_STARTED)
        await self._consumer.start()
        await self._consumer.instance.routes.refresh(TOPIC)
        await self._consumer.instance.send_heartbeats()

    async def pull(self, offset: int, *, queue: int = 0, broker: str = BROKER) -> int:
        """See ``Reader``."""
        result = await self._consumer.pull(MessageQueue(TOPIC, broker, queue), "*", offset, _MAX_MESSAGES)
        return result.next_begin_offset

    async def commit(self, offset: int, *, queue: int = 0, broker: str = BROKER) -> None:
        """See ``Reader``."""
        place = MessageQueue(TOPIC, broker, queue)
        self._consumer.update_consume_offset(place, offset)
        await self._consumer.persist_consume_offset(place)

    async def stop(self) -> None:
        """See ``Reader``."""
        await self.close()
        self._journal.note(self._process, Lab.PROCESS_STOPPED)

    async def close(self) -> None:
        """Leave the group; may be repeated."""
        await self._consumer.shutdown()
