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


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Spark with two workers on this machine and the data source registered."""
    from rewindmq.pipeline.spark.session import make_session, stop_session

    session = make_session("local[2]", app_name="rewindmq-tests", memory="1g", config=SMALL_JOBS)
    yield session
    stop_session(session)


@pytest.fixture(
    scope="session",
    params=["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.long, pytest.mark.chosen])],
)
def runner(request: pytest.FixtureRequest) -> Runner:
    """Each engine that a job's function takes; Spark's is the session of the test run."""
    return LocalEngine() if request.param == "local" else request.getfixturevalue("spark")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that start Spark, which is slow and needs Java.

    A test that uses the session is of the long group and of CI's part of it. A long test of this folder
    starts Spark itself, and says whether CI runs it.
    """
    for item in items:
        if not item.path.is_relative_to(HERE):
            continue
        is_long = item.get_closest_marker("long") is not None
        if is_long:
            item.add_marker(pytest.mark.spark)
        elif "spark" in getattr(item, "fixturenames", ()):
            for marker in (pytest.mark.spark, pytest.mark.long, pytest.mark.chosen):
                item.add_marker(marker)
