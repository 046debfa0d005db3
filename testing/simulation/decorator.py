"""``simulated``: makes a test run under virtual time, once for each seed."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import pytest

from rewindmq.testing.clusters.options import ClusterOptions
from rewindmq.testing.errors import KitError
from rewindmq.testing.handles.rmq import Rmq
from rewindmq.testing.plugin import cluster_options, wanted_seeds, wants_wire
from rewindmq.testing.simulation.run import Simulation, SimulationSettings

TestFunction = Callable[..., Coroutine[Any, Any, object]]


def simulated(
    *,
    seeds: int = 200,
    latency: float = 0.3,
    kills: int = 0,
    power_failures: bool = False,
    limit: float = 600.0,
) -> Callable[[TestFunction], Callable[..., None]]:
    """Run an async test with the fixture ``rmq`` in one process under virtual time, once for each seed.

    The cluster is simulated and new for each seed. Its options are those of the fixture ``rmq``: the marker
    ``rewindmq``, the command line, the ini file. Other fixtures of the test are made once for all seeds.
    See docs/testkit/simulation.md.

    Args:
        seeds: number of seeds, from 0 on.
        latency: greatest delay of a message, virtual seconds.
        kills: how often a schedule may kill and restart a broker.
        power_failures: a broker that is killed loses what its disk has not synced.
        limit: virtual seconds after which a test that has not ended fails.

    Raises:
        KitError: the function is not async or does not take ``rmq``, or an argument is out of range.
    """
    if seeds < 1:
        raise KitError(f"seeds must be 1 or greater, not {seeds}")
    settings = SimulationSettings(latency, kills, power_failures, limit)

    def decorate(function: TestFunction) -> Callable[..., None]:
        parameters = _parameters(function)
        takes_request = any(parameter.name == "request" for parameter in parameters)

        @functools.wraps(function)
        def test(*arguments: Any, request: pytest.FixtureRequest, **fixtures: Any) -> None:
            __tracebackhide__ = True
            if takes_request:
                fixtures["request"] = request
            body = functools.partial(_call, function, arguments, fixtures)
            simulation = Simulation(body, settings, _options(function, request))
            simulation.check(wanted_seeds(request.config, seeds))

        test.__signature__ = _visible(parameters)  # type: ignore[attr-defined]
        return test

    return decorate


def _call(
    function: TestFunction, arguments: tuple[Any, ...], fixtures: Mapping[str, Any], rmq: Rmq
) -> Coroutine[Any, Any, object]:
    return function(*arguments, rmq=rmq, **fixtures)


def _options(function: TestFunction, request: pytest.FixtureRequest) -> ClusterOptions:
    """Return the options of a test's cluster; fail the test if they cannot be simulated."""
    options = cluster_options(request)
    if wants_wire(request) or options.snapshot:
        pytest.fail(
            f"{function.__name__} is simulated: wire and snapshot need the fixture rmq", pytrace=False
        )
    return options


def _visible(parameters: list[inspect.Parameter]) -> inspect.Signature:
    """Return the parameters that pytest fills: the test's own without ``rmq``, and ``request``."""
    visible = [parameter for parameter in parameters if parameter.name != "rmq"]
    if not any(parameter.name == "request" for parameter in visible):
        visible.append(inspect.Parameter("request", inspect.Parameter.KEYWORD_ONLY))
    return inspect.Signature(visible)


def _parameters(function: TestFunction) -> list[inspect.Parameter]:
    """Return the parameters of a test.

    Raises:
        KitError: it cannot be simulated.
    """
    name = getattr(function, "__name__", repr(function))
    if not inspect.iscoroutinefunction(function):
        raise KitError(f"@simulated needs a coroutine function, but {name} is none: write `async def {name}`")
    parameters = list(inspect.signature(function).parameters.values())
    if not any(parameter.name == "rmq" for parameter in parameters):
        raise KitError(f"@simulated needs a test with the parameter rmq, but {name} has none")
    return parameters
