"""The consumers of a race that live in the Java driver."""

from __future__ import annotations

from typing import Any

from rewindmq.race.history import Event, Lab
from rewindmq.race.stage.journal import Journal
from rewindmq.race.stage.stage import BROKER, consumer_process, reader_process
from tools.interop.races.race_driver import RaceDriver


class JavaActor:
    """One consumer in the Java driver.

    Args:
        process: its name in the history.
        key: its name in the driver.
    """

    def __init__(self, name: str, process: str, key: str, driver: RaceDriver, journal: Journal) -> None:
        self.name = name
        self.process = process
        self._key = key
        self._driver = driver
        self._journal = journal
        # There is nothing to end before the start.
        self._is_over = True

    async def start(self, op: str, **fields: Any) -> None:
        """Join the group."""
        self._journal.note(self.process, Lab.PROCESS_STARTED)
        await self._driver.do(op, name=self._key, **fields)
        self._is_over = False

    async def act(self, what: str, **fields: Any) -> dict[str, Any]:
        return await self._driver.do("act", name=self._key, what=what, **fields)

    async def stop(self) -> None:
        """Leave the group."""
        await self.end()
        self._journal.note(self.process, Lab.PROCESS_STOPPED)

    async def end(self) -> None:
        """Leave the group, if it has not left yet."""
        if not self._is_over:
            self._is_over = True
            await self._driver.do("stop", name=self._key)


class JavaConsumer(JavaActor):
    """A push consumer; implements ``Consumer``."""

    def __init__(self, name: str, key: str, driver: RaceDriver, journal: Journal) -> None:
        super().__init__(name, consumer_process(name), key, driver, journal)

    async def kill(self) -> None:
        """Kill its JVM by SIGKILL; no other consumer may live in that JVM."""
        killed = Event(self._journal.now, self.process, Lab.PROCESS_KILLED)
        self._is_over = True
        await self._driver.kill()
        self._journal.add(killed)

    async def suspend(self) -> None:
        await self.act("suspend")

    async def resume(self) -> None:
        await self.act("resume")

    async def release(self, offset: int) -> None:
        await self.act("release", offset=offset)


class JavaReader(JavaActor):
    """A pull consumer; implements ``Reader``."""

    def __init__(self, name: str, key: str, driver: RaceDriver, journal: Journal) -> None:
        super().__init__(name, reader_process(name), key, driver, journal)

    async def pull(self, offset: int, *, queue: int = 0, broker: str = BROKER) -> int:
        answer = await self.act("pull", offset=offset, queue=queue, broker=broker)
        following = answer["next"]
        assert isinstance(following, int)
        return following

    async def commit(self, offset: int, *, queue: int = 0, broker: str = BROKER) -> None:
        await self.act("commit", offset=offset, queue=queue, broker=broker)


class JavaApplication(JavaActor):
    """A lite pull consumer; implements ``Application``."""

    def __init__(self, name: str, key: str, driver: RaceDriver, journal: Journal) -> None:
        super().__init__(name, reader_process(name), key, driver, journal)

    async def poll(self, count: int) -> None:
        await self.act("poll", count=count)

    async def commit(self, *, queue: int = 0, broker: str = BROKER) -> None:
        await self.act("commit")
