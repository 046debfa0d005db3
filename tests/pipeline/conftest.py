"""One Spark session for a test run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.pipeline.sparks import SMALL_JOBS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Spark with two workers on this machine and the data source registered."""
    from rewindmq.pipeline.spark.session import make_session, stop_session

    session = make_session("local[2]", app_name="rewindmq-tests", memory="1g", config=SMALL_JOBS)
    yield session
    stop_session(session)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put tests that use the session into the long group, in CI's part: Spark starts slowly, needs Java."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) and item.get_closest_marker("long") is None:
            item.add_marker(pytest.mark.long)
            item.add_marker(pytest.mark.chosen)
