"""The pytest plugin: the fixture ``rmq``, the marker ``rewindmq``, options, and logs of failed tests.

Nothing of RewindMQ is loaded until a test asks for a fixture.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Generator, Iterator
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from rewindmq.testing.clusters.cluster_pool import ClusterPool
    from rewindmq.testing.clusters.options import ClusterOptions
    from rewindmq.testing.handles.rmq import Rmq

# The options of a cluster on the command line and in the ini file, with their types and help.
_OPTIONS: Final[tuple[tuple[str, type, str], ...]] = (
    ("brokers", int, "number of brokers of each cluster (default: 1)"),
    ("slaves", int, "number of slaves of each broker (default: 0)"),
    ("profile", str, "release to imitate: v42, v49 or v53 (default: v49)"),
    ("time_scale", float, "factor on every scheduled wait of servers and clients (default: 0.05)"),
)
_MARKER: Final = (
    "rewindmq(brokers=1, slaves=0, profile='v49', time_scale=0.05, broker_config={}): options of the test's"
    " cluster; tests with equal options share one; wire=True permits rmq.on, rmq.partition and rmq.slow_link"
)
# Every ``Rmq`` of a test, also those of the factories' fixtures.
_STARTED: Final = pytest.StashKey[list["Rmq"]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Define the options."""
    group = parser.getgroup("rewindmq", "RewindMQ clusters for tests")
    group.addoption(
        "--rewindmq-namesrv",
        metavar="HOST:PORT",
        help="run the tests against a running cluster instead of starting one",
    )
    parser.addini("rewindmq_namesrv", "name server of a running cluster, host:port", default=None)
    for name, kind, text in _OPTIONS:
        group.addoption(f"--rewindmq-{name.replace('_', '-')}", type=kind, metavar=kind.__name__, help=text)
        parser.addini(f"rewindmq_{name}", text, default=None)


def pytest_configure(config: pytest.Config) -> None:
    """Define the marker."""
    config.addinivalue_line("markers", _MARKER)


@pytest.fixture(scope="session")
def rewindmq_clusters(pytestconfig: pytest.Config) -> Iterator[ClusterPool]:
    """The clusters of this session, or of this worker of pytest-xdist; they stop at its end."""
    from rewindmq.testing.clusters.cluster_pool import ClusterPool

    with ClusterPool(_namesrv(pytestconfig)) as pool:
        yield pool


async def _rmq(request: pytest.FixtureRequest, rewindmq_clusters: ClusterPool) -> AsyncIterator[Rmq]:
    """A cluster for the test, with fresh names for topics and groups; see ``rewindmq.testing.Rmq``."""
    from rewindmq.cluster.async_cluster import run_in_thread
    from rewindmq.testing.errors import KitError
    from rewindmq.testing.handles.rmq import Rmq

    _require_async_test(request)
    options, wire = _cluster_options(request)
    servers = await run_in_thread(lambda: rewindmq_clusters.get(options))
    try:
        made = Rmq(servers, wire=wire)
    except KitError as error:
        pytest.fail(str(error), pytrace=False)
    async with made:
        note_started(request.node, made)
        yield made


def note_started(item: pytest.Item, made: Rmq) -> None:
    """Let the hooks know an ``Rmq`` of a test: they check its faults, and show its logs."""
    item.stash.setdefault(_STARTED, []).append(made)


def _no_rmq() -> None:
    """Fail: pytest-asyncio is missing."""
    pytest.fail("the fixture rmq needs pytest-asyncio: pip install 'rewindmq[testing]'", pytrace=False)


def _rmq_fixture() -> Any:
    try:
        import pytest_asyncio
    except ImportError:
        return pytest.fixture(name="rmq")(_no_rmq)
    return pytest_asyncio.fixture(name="rmq")(_rmq)


rmq = _rmq_fixture()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test that passed although it made a rule that no request met."""
    try:
        result = yield
        for made in item.stash.get(_STARTED, []):
            try:
                made.check_faults()
            except AssertionError as error:
                pytest.fail(str(error), pytrace=False)
    finally:
        for made in item.stash.get(_STARTED, []):
            made.excuse_faults()
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to a failed test what the processes of its cluster logged during it."""
    report = yield
    if report.failed:
        for made in item.stash.get(_STARTED, []):
            for name, text in made.logs().items():
                report.sections.append((f"log of {name}", text))
    return report


def _require_async_test(request: pytest.FixtureRequest) -> None:
    """Fail a plain function that asks for ``rmq``: it cannot await the methods."""
    function = request.function
    is_async = inspect.iscoroutinefunction(function) or hasattr(function, "hypothesis")
    if not is_async and "rmq" in inspect.signature(function).parameters:
        pytest.fail(
            f"{function.__name__} is not async, but the methods of rmq are: write `async def`, or use"
            " rewindmq.sync.LocalCluster",
            pytrace=False,
        )


def _namesrv(config: pytest.Config) -> str | None:
    """Return the address of a running cluster to use, or None."""
    return config.getoption("--rewindmq-namesrv") or config.getini("rewindmq_namesrv") or None


def _cluster_options(request: pytest.FixtureRequest) -> tuple[ClusterOptions, bool]:
    """Return the options of a test's cluster: the marker's, else the command line's, else the ini file's.

    The second value is the marker's ``wire``: an option of the test, not of its cluster.
    """
    from rewindmq.testing.clusters.options import ClusterOptions
    from rewindmq.testing.errors import KitError

    config = request.config
    values: dict[str, Any] = {}
    for name, kind, _ in _OPTIONS:
        given = config.getoption(f"rewindmq_{name}")
        text = config.getini(f"rewindmq_{name}")
        if given is not None:
            values[name] = given
        elif text:
            try:
                values[name] = kind(text)
            except ValueError:
                raise pytest.UsageError(f"rewindmq_{name} = {text}: not a {kind.__name__}") from None
    marker = request.node.get_closest_marker("rewindmq")
    if marker is not None:
        if marker.args:
            pytest.fail("the marker rewindmq takes keyword arguments only", pytrace=False)
        values.update(marker.kwargs)
    wire = bool(values.pop("wire", False))
    try:
        # Waits of a cluster that runs already are real ones, unless the user says otherwise.
        default = ClusterOptions(time_scale=1.0) if _namesrv(config) else ClusterOptions()
        return default.with_changes(values), wire
    except KitError as error:
        pytest.fail(f"marker rewindmq: {error}", pytrace=False)
