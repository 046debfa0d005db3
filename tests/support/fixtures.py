"""What a test runs on: the decorators ``simulated`` and ``played``, and the fixture ``stage``."""

from __future__ import annotations

import functools
import inspect
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from rewindmq.protocol.command import SerializeType
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.runtime import system_runtime
from rewindmq.protocol.version import CURRENT_VERSION
from rewindmq.race.sim import World
from tests.support.servers import NO_KEYS
from tests.support.stage import Scenario, ServerStage, SimStage


class RunScenario:
    """Runs a scenario under virtual time, from second 0, on a fresh stage.

    Args:
        root: a folder for the files of all its stages.
        has_namesrv: whether a name server starts first, on a network that takes time.
    """

    def __init__(self, root: Path, *, has_namesrv: bool) -> None:
        self._root = root
        self._has_namesrv = has_namesrv

    def __call__(
        self,
        scenario: Scenario,
        *,
        brokers: int = 1,
        profile: Profile = Profile.V49,
        serialize_type: SerializeType | None = None,
        version: int = CURRENT_VERSION,
        seed: int = 1,
        store: Mapping[str, object] = NO_KEYS,
        **switches: Any,
    ) -> None:
        """Run ``scenario`` to its end.

        Args:
            brokers: how many are started first: broker-a, broker-b and so on.
            profile: of everything on the stage unless it is started with another.
            serialize_type: of every peer and client unless made with another; None: each one's default.
            version: of the requests of every peer unless made with another.
            seed: of all chance in the world.
            store: keys of the brokers' ``StoreConfig``.
            switches: keys of the brokers' ``BrokerConfig``.
        """
        world = World(seed, latency=(0.0, 0.001 if self._has_namesrv else 0.0))

        async def main() -> None:
            root = Path(tempfile.mkdtemp(dir=self._root))
            async with AsyncExitStack() as exits:
                stage = SimStage(
                    world, root, exits, profile=profile, serialize_type=serialize_type, version=version
                )
                if self._has_namesrv:
                    stage.probe = stage.events
                    await stage.start_namesrv()
                for letter in "abc"[:brokers]:
                    await stage.start_broker(f"broker-{letter}", store=store, **switches)
                await scenario(stage)

        world.run(main())


@pytest.fixture
def simulate(tmp_path: Path) -> RunScenario:
    """``simulate(scenario, ...)``: brokers without a name server, on a network that takes no time."""
    return RunScenario(tmp_path, has_namesrv=False)


@pytest.fixture
def play(tmp_path: Path) -> RunScenario:
    """``play(scenario, ...)``: a name server and its brokers, on a network of up to 1 ms each way.

    The stage's ``events`` hear of every point that is passed.
    """
    return RunScenario(tmp_path, has_namesrv=True)


_Test = Callable[..., Awaitable[None]]
# Options of ``RunScenario`` that a parameter of the test gives.
_OF_PARAMETERS: Final = frozenset({"brokers", "profile", "serialize_type", "version", "seed"})


def simulated(**options: Any) -> Callable[[_Test], Callable[..., None]]:
    """Run an async test under virtual time, on a ``stage`` of brokers without a name server.

    It is for tests of a broker or a client. ``rewindmq.testing.simulated``, which users have for the tests of
    their applications, gives a whole cluster and repeats the test with many seeds.

    Args:
        options: see ``RunScenario``. Otherwise a parameter of the test gives the option of its name.
    """
    return functools.partial(_in_virtual_time, "simulate", options)


def played(**options: Any) -> Callable[[_Test], Callable[..., None]]:
    """Run an async test under virtual time, on a ``stage`` with a name server; see ``simulated``."""
    return functools.partial(_in_virtual_time, "play", options)


def _in_virtual_time(fixture: str, options: Mapping[str, Any], test: _Test) -> Callable[..., None]:
    """Return a test that takes the fixture instead of ``stage``."""
    parameters = inspect.signature(test).parameters
    first = inspect.Parameter(fixture, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    signature = inspect.Signature([first, *(each for name, each in parameters.items() if name != "stage")])

    @functools.wraps(test)
    def run(*positional: Any, **named: Any) -> None:
        arguments = signature.bind(*positional, **named).arguments
        simulate: RunScenario = arguments.pop(fixture)
        given = {name: arguments[name] for name in _OF_PARAMETERS & arguments.keys()}
        simulate(lambda stage: test(stage=stage, **arguments), **{**given, **options})

    run.__signature__ = signature  # type: ignore[attr-defined]
    return run


@asynccontextmanager
async def real_stage(root: Path, *, time_scale: float = 1.0) -> AsyncIterator[ServerStage]:
    """A stage on real sockets, which starts nothing by itself.

    Args:
        time_scale: real seconds that a second of the protocol takes.
    """
    runtime = system_runtime(time_scale=time_scale)
    async with AsyncExitStack() as exits:
        yield ServerStage(lambda _: runtime, root, exits)
    runtime.workers.close()


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[ServerStage]:
    """Real sockets; starts nothing by itself."""
    async with real_stage(tmp_path) as made:
        yield made
