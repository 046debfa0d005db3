"""One Spark session for a test run; and lets the tests here import the helper modules beside them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Spark with two workers on this machine and the data source registered."""
    from rewindmq.pipeline.session import make_session, stop_session

    session = make_session(
        "local[2]", app_name="rewindmq-tests", memory="1g", config={"spark.sql.shuffle.partitions": "4"}
    )
    yield session
    stop_session(session)
