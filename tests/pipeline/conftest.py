"""One Spark session for a test run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from rewindmq.pipeline.engines.local_engine import LocalEngine
from tests.pipeline.sparks import SMALL_JOBS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rewindmq.pipeline.engines.runner import Runner

HERE: Final = Path(__file__).parent
_SPARK: Final = pytest.mark.slow(
    full_only="CI runs it with the local engine, and test_job_engines.py compares the engines"
)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Spark with two workers on this machine and the data source registered."""
    from rewindmq.pipeline.spark.session import make_session, stop_session

    session = make_session("local[2]", app_name="rewindmq-tests", memory="1g", config=SMALL_JOBS)
    yield session
    stop_session(session)


@pytest.fixture(
    scope="session",
    params=["local", pytest.param("spark", marks=_SPARK)],
)
def runner(request: pytest.FixtureRequest) -> Runner:
    """Each engine that a job's function takes; Spark's is the session of the test run."""
    return LocalEngine() if request.param == "local" else request.getfixturevalue("spark")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that use the session as slow."""
    for item in items:
        if item.path.is_relative_to(HERE) and "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
