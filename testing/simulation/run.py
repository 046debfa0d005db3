"""Simulation: runs a test body in simulated clusters, one for each seed, and shrinks the first failure."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import pytest

from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.profile import Profile
from rewindmq.race.sim.servers import SimServers, sim_broker_config
from rewindmq.testing.clusters.options import ClusterOptions
from rewindmq.testing.errors import KitError
from rewindmq.testing.handles.rmq import Rmq
from rewindmq.testing.simulation.garbage import collected_rarely
from rewindmq.testing.simulation.schedule import Choice, Key, SimulatedSchedule
from rewindmq.testing.simulation.servers import SimulatedServers
from rewindmq.testing.simulation.shrink import shrink
from rewindmq.testing.simulation.world import SimulatedWorld

Body = Callable[[Rmq], Awaitable[object]]

# Small files: each run makes new ones. The largest message is that of a batch of the kit and its frame.
_COMMIT_LOG_FILE: Final = 4 << 20
_MAX_MESSAGE: Final = 2 << 20


@dataclass(frozen=True, slots=True)
class SimulationSettings:
    """The settings of a simulated test; see ``simulated``."""

    latency: float
    kills: int
    power_failures: bool
    limit: float

    def __post_init__(self) -> None:
        if self.latency < 0 or self.kills < 0:
            raise KitError("latency and kills must be 0 or greater")
        if self.limit <= 0:
            raise KitError(f"limit must be greater than 0, not {self.limit:g}")


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """One finished run.

    Attributes:
        error: what the test raised; None if it passed.
        choices: the choices that differed from their default.
    """

    error: BaseException | None
    choices: list[Choice]


class Simulation:
    """One test body and the cluster that it needs.

    Args:
        options: of the cluster; ``time_scale`` has no meaning under virtual time.

    Raises:
        KitError: an option cannot be simulated.
    """

    def __init__(self, body: Body, settings: SimulationSettings, options: ClusterOptions) -> None:
        if options.slaves:
            raise KitError("slaves cannot be simulated: omit the option, or use the fixture rmq")
        self._body = body
        self._settings = settings
        self._brokers = options.brokers
        self._client_options = {"profile": options.profile}
        try:
            self._config = sim_broker_config(
                dict(options.broker_config),
                commit_log_file=_COMMIT_LOG_FILE,
                max_message=_MAX_MESSAGE,
                profile=Profile(options.profile),
            )
        except (RewindMQError, ValueError) as error:
            raise KitError(str(error)) from None

    def check(self, seeds: Iterable[int]) -> None:
        """Run seeds until one fails; shrink its schedule, and raise what the shrunken run raises.

        The error has notes with the seed and the shortened schedule.
        """
        __tracebackhide__ = True
        with _silence(), collected_rarely():
            failed = self._first_failure(seeds)
        if failed is not None:
            raise self._failure(*failed)

    def _first_failure(self, seeds: Iterable[int]) -> tuple[int, int, SimulatedRun] | None:
        """Return the first seed that fails, the number of seeds that passed, and the failed run."""
        for passed, seed in enumerate(seeds):
            run = self.run(seed)
            if run.error is not None:
                return seed, passed, run
        return None

    def run(
        self, seed: int, kept: Mapping[Key, float] | None = None, *, describes: bool = False
    ) -> SimulatedRun:
        """Run the test once, in a cluster of its own.

        Args:
            kept: the choices of a replay; None draws them from the seed.
        """
        __tracebackhide__ = True
        settings = self._settings
        schedule = SimulatedSchedule(seed, settings.latency, kept, describes=describes)
        world = SimulatedWorld(seed, schedule, limit=settings.limit, power_failures=settings.power_failures)
        # The application may use the module ``random``.
        state = random.getstate()
        random.seed(seed)
        try:
            world.run(self._main(world, schedule))
        except (Exception, pytest.fail.Exception) as error:
            return SimulatedRun(error, schedule.taken)
        finally:
            random.setstate(state)
        return SimulatedRun(None, schedule.taken)

    async def _main(self, world: SimulatedWorld, schedule: SimulatedSchedule) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.set_name("test")
        sim = SimServers(world, self._config, self._brokers)
        servers = SimulatedServers(
            sim.namesrv_address,
            self._client_options,
            world=world,
            schedule=schedule,
            kills=self._settings.kills,
            sim=sim,
        )
        try:
            await servers.start()
            async with Rmq(servers) as rmq:
                await self._body(rmq)
        finally:
            sim.kill_all()

    def _failure(self, seed: int, passed: int, run: SimulatedRun) -> BaseException:
        """Shrink the schedule of a failed run; return the error of the shortened schedule."""
        assert run.error is not None
        kind = type(run.error)

        def fails(choices: list[Choice]) -> list[Choice] | None:
            again = self.run(seed, _values(choices))
            return again.choices if type(again.error) is kind else None

        with _silence(), collected_rarely():
            choices, runs = shrink(run.choices, fails)
        shortened = self.run(seed, _values(choices), describes=True)
        lines = [f"seed {seed} fails, {passed} seeds passed before; to run it alone: --rewindmq-seed {seed}"]
        error = shortened.error
        if error is None:
            error = run.error
            lines.append("the replay of its schedule passed: the test depends on more than its seed")
        else:
            lines += _schedule_text(run.choices, shortened.choices, runs)
        error.add_note("\n".join(lines))
        return error


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Keep RewindMQ from logging: only the last run of a failed test is of interest."""
    logger = logging.getLogger("rewindmq")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)


def _values(choices: Iterable[Choice]) -> dict[Key, float]:
    return {choice.key: choice.value for choice in choices}


def _schedule_text(all_choices: list[Choice], choices: list[Choice], runs: int) -> list[str]:
    """Return the lines that describe the shortened schedule."""
    if not choices:
        return ["its schedule does not matter: the test fails without delays and kills, too"]
    head = (
        f"a shortened schedule that fails has {len(choices)} of {len(all_choices)} choices"
        f" ({runs} runs to find it):"
    )
    return [head, *(f"  {choice}" for choice in choices)]
