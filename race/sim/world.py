"""World: deterministic simulation of whole clusters in one process, without real waiting."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from rewindmq.protocol.points import Failpoint, Probe
from rewindmq.protocol.remoting.runtime import LoopTimers, Runtime, Workers
from rewindmq.protocol.remoting.workers import outcome
from rewindmq.race.sim.disk import SimDisk
from rewindmq.race.sim.host import Incarnation
from rewindmq.race.sim.loop import VirtualLoop
from rewindmq.race.sim.network import Fabric, SimNetwork

T = TypeVar("T")

# The wall clock of every host when the world begins: 14 November 2023, 22:13:20 UTC.
EPOCH_MS: Final = 1_700_000_000_000


class World:
    """Virtual time, an in-memory network and seeded random numbers for everything started inside ``run``.

    The same seed gives the same schedule if the code under test uses nothing but its ``Runtime``. Do not
    iterate over sets: objects hash by address and strings by a seed of the interpreter, so the order differs
    between two runs.

    If a host may be killed, start its code with ``spawn``. Then everything that the code starts belongs to
    that host.

    Args:
        seed: seed of the network's latencies and of every runtime's ``random``.
        latency: least and greatest seconds that a message takes; drawn uniformly for each message.

    Attributes:
        wall_ahead_ms: by how much somebody has set the wall clocks of all hosts ahead, or back if negative.
            Timers and monotonic clocks do not notice.
    """

    def __init__(self, seed: int = 0, *, latency: tuple[float, float] = (0.0, 0.001)) -> None:
        self.seed = seed
        self.wall_ahead_ms = 0
        self._loop: VirtualLoop | None = None
        self._fabric = self._new_fabric(random.Random(f"{seed} network"), latency)
        self._runtimes = 0
        self._hosts: dict[str, Incarnation] = {}
        self._dead: list[Incarnation] = []
        self._disks: dict[str, SimDisk] = {}

    @property
    def now(self) -> float:
        """Virtual seconds since the world began."""
        return 0.0 if self._loop is None else self._loop.now

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run ``main`` to its end and return its result; a world runs once.

        Tasks still running then are cancelled, as ``asyncio.run`` does.

        Raises:
            DeadlockError: ``main`` waits, but nothing is ready and no timer is set.
        """
        assert self._loop is None, "a world runs once"
        with asyncio.Runner(loop_factory=self._make_loop) as runner:
            try:
                return runner.run(main)
            except Exception as error:
                error.add_note(self._note())
                raise
            finally:
                for incarnation in self._dead:
                    incarnation.close_tasks()

    async def sleep(self, seconds: float) -> None:
        """Sleep in virtual time, which takes no real time. Call it only inside ``run``."""
        await asyncio.sleep(seconds)

    def runtime(
        self, host: str = "10.0.0.1", *, probe: Probe | None = None, failpoint: Failpoint | None = None
    ) -> Runtime:
        """Create the runtime of one process on ``host``. Its timers are not scaled, as waiting costs nothing.

        Processes on one host share its ports; "0.0.0.0" and "127.0.0.1" mean the host itself. After ``kill``,
        this call starts the host again.
        """
        self._runtimes += 1
        return Runtime(
            clock=_WorldClock(self),
            timers=LoopTimers(),
            network=SimNetwork(self._fabric, self._incarnation(host)),
            workers=self._new_workers(host),
            random=random.Random(f"{self.seed} {host} {self._runtimes}"),
            probe=probe,
            failpoint=failpoint,
        )

    def disk(self, host: str = "10.0.0.1") -> SimDisk:
        """Return the disk of a host; it survives ``kill``."""
        if host not in self._disks:
            self._disks[host] = self._new_disk(_WorldClock(self).now_ms)
        return self._disks[host]

    def spawn(self, host: str, work: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
        """Run ``work`` as code of a host; everything it starts belongs to that host too.

        Returns:
            A future with the result or exception of ``work``, or ``HostKilledError`` if the host is killed
            first. Cancelling the future cancels ``work``.
        """
        owner = self._incarnation(host)
        loop = asyncio.get_running_loop()
        task = loop.create_task(work, context=owner.context.copy())
        future: asyncio.Future[T] = loop.create_future()
        owner.awaited[future] = None

        def ended(task: asyncio.Task[T]) -> None:
            owner.awaited.pop(future, None)
            if future.done():
                return
            if task.cancelled():
                future.cancel()
            elif (error := task.exception()) is not None:
                future.set_exception(error)
            else:
                future.set_result(task.result())

        def cancelled(future: asyncio.Future[T]) -> None:
            if future.cancelled():
                task.cancel()

        task.add_done_callback(ended)
        future.add_done_callback(cancelled)
        return future

    def call(self, host: str, function: Callable[..., T], *args: Any) -> T:
        """Call ``function(*args)`` now, as code of a host."""
        return self._incarnation(host).context.copy().run(function, *args)

    def kill(self, host: str) -> None:
        """End everything on a host at once, as SIGKILL does.

        Its tasks, timers and callbacks never run again. Its listeners are closed, and the other ends of its
        connections are reset. Its disk keeps what was written. Do nothing if no code runs on the host.
        """
        killed = self._hosts.pop(host, None)
        if killed is None:
            return
        self._dead.append(killed)
        killed.die()
        self._fabric.kill(killed)
        if host in self._disks:
            self._disks[host].release_locks()

    def pause(self, host: str) -> None:
        """Stop the code of a host, as SIGSTOP does: its connections stay, and it answers nothing.

        Do nothing if no code runs on the host, or if it is paused.
        """
        if host in self._hosts and self._hosts[host].held is None:
            self._hosts[host].held = deque()

    def resume(self, host: str) -> None:
        """Continue the code of a paused host; timers that became due meanwhile run now."""
        if host in self._hosts:
            assert self._loop is not None
            self._loop.resume(self._hosts[host])

    def sever(self, host: str, other: str) -> None:
        """Break the connections between two hosts; both ends see a reset and may connect again."""
        self._fabric.sever(host, other)

    def _incarnation(self, host: str) -> Incarnation:
        if host not in self._hosts:
            self._hosts[host] = Incarnation(host)
        return self._hosts[host]

    def _make_loop(self) -> VirtualLoop:
        self._loop = VirtualLoop()
        return self._loop

    def _note(self) -> str:
        """Return what a failure of the main coroutine says of this world."""
        return f"in World(seed={self.seed}), after {self.now:g} virtual seconds"

    def _new_fabric(self, rng: random.Random, latency: tuple[float, float]) -> Fabric:
        return Fabric(rng, latency)

    def _new_workers(self, host: str) -> Workers:
        return InlineWorkers()

    def _new_disk(self, now_ms: Callable[[], int]) -> SimDisk:
        return SimDisk(now_ms)


@dataclass(frozen=True, slots=True)
class _WorldClock:
    world: World
    scale: float = 1.0

    def now_ms(self) -> int:
        return EPOCH_MS + round(self.monotonic() * 1000) + self.world.wall_ahead_ms

    def monotonic(self) -> float:
        # Read for every event, so without the property ``World.now``.
        loop = self.world._loop
        return 0.0 if loop is None else loop.now


class InlineWorkers:
    """Workers without threads: the function runs as a callback of the loop, in one step."""

    def run(self, function: Callable[..., T], *args: Any) -> Awaitable[T]:
        """Run ``function(*args)`` in a later turn of the loop."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        if late := self._late(function):
            loop.call_later(late, self.perform, future, function, args)
        else:
            loop.call_soon(self.perform, future, function, args)
        return future

    def close(self) -> None:
        """Do nothing: there are no threads to stop."""

    def _late(self, function: Callable[..., object]) -> float:
        """Return how many virtual seconds pass before the function runs."""
        return 0.0

    @staticmethod
    def perform(future: asyncio.Future[T], function: Callable[..., T], args: tuple[Any, ...]) -> None:
        """Run the function; a callback of the loop. Tools that measure the loop tell it by this name."""
        if future.done():
            return
        result, error = outcome(function, args)
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
