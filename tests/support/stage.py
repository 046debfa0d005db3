"""Stage: what a scenario runs on, under virtual time or on real sockets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from types import MappingProxyType

from rewindmq.protocol.command import SerializeType
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.connection import Handler
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.protocol.version import CURRENT_VERSION, LanguageCode
from rewindmq.race.sim import World
from rewindmq.race.sim.world import EPOCH_MS
from tests.support.events import Events
from tests.support.mqadmin import Mqadmin
from tests.support.peer import Peer
from tests.support.virtual import until


class ServerStage(Mqadmin):
    """Starts servers, clients and peers, and closes them when the scenario is over.

    Args:
        version: of the requests of every peer unless said otherwise.
    """

    def __init__(
        self,
        make_runtime: Callable[[str], Runtime],
        root: Path,
        exits: AsyncExitStack,
        *,
        is_real: bool = True,
        profile: Profile = Profile.V49,
        serialize_type: SerializeType | None = None,
        version: int = CURRENT_VERSION,
    ) -> None:
        super().__init__(
            make_runtime, root, exits, is_real=is_real, profile=profile, serialize_type=serialize_type
        )
        self.version = version
        self.consumed = []

    def peer(
        self,
        client_id: str = "c1",
        address: str | None = None,
        *,
        host: str | None = None,
        serialize_type: SerializeType | None = None,
        version: int | None = None,
        language: LanguageCode = LanguageCode.JAVA,
        answers: Mapping[int, Handler] = MappingProxyType({}),
    ) -> Peer:
        """A peer of the newest broker, or of the name server where there is no broker."""
        peer = Peer(
            self.new_runtime(host),
            address or (self.broker.address if self._newest else self.namesrv),
            serialize_type=self.serialize_type if serialize_type is None else serialize_type,
            client_id=client_id,
            version=self.version if version is None else version,
            language=language,
            answers=answers,
        )
        self.at_exit(peer.client.close)
        return peer


class SimStage(ServerStage):
    """A stage in a ``World``: time is virtual, and each process has a host of its own.

    Attributes:
        events: the points passed since ``probe`` became ``events``, which it is from the start in ``play``.
    """

    def __init__(
        self,
        world: World,
        root: Path,
        exits: AsyncExitStack,
        *,
        profile: Profile = Profile.V49,
        serialize_type: SerializeType | None = None,
        version: int = CURRENT_VERSION,
    ) -> None:
        super().__init__(
            world.runtime,
            root,
            exits,
            is_real=False,
            profile=profile,
            serialize_type=serialize_type,
            version=version,
        )
        self.world = world
        self.events = Events(world)

    async def at(self, seconds: float) -> None:
        """Let virtual time pass until so many seconds after the start."""
        await self.runtime.timers.sleep(seconds - self.world.now)

    async def at_ms(self, milliseconds: int) -> int:
        """The same in ms; returns the wall clock then."""
        await self.at(milliseconds / 1_000)
        return EPOCH_MS + milliseconds

    async def until(
        self, condition: Callable[[], bool], seconds: float = 60.0, *, step: float = 0.01
    ) -> None:
        """Let virtual time pass, ``step`` seconds at once, until something holds; fails after ``seconds``."""
        await until(self.world, condition, seconds, step=step)

    async def group_at(
        self,
        offset: int,
        queues: int = 1,
        *,
        messages: int = 100,
        write: int | None = None,
        read: int | None = None,
        perm: int = 6,
    ) -> Peer:
        """A member of G, which stands at ``offset`` in each queue of T, holding messages since second 1.

        Args:
            write: queues to write to, when there are more or fewer than ``queues`` offsets.
            read: queues to read from, likewise.
        """
        peer = self.peer()
        writes = queues if write is None else write
        await peer.create_topic(write=writes, read=queues if read is None else read, perm=perm)
        await peer.heartbeat()
        await self.at(1.0)
        for queue_id in range(writes):
            await peer.fill(messages, queue_id=queue_id)
        await self.at(2.0)
        await peer.commit_all(offset, queues)
        return peer


Scenario = Callable[[SimStage], Awaitable[None]]
