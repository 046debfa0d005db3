"""Which jobs get a session for small jobs."""

from __future__ import annotations

import pytest

from rewindmq.pipeline.spark.small import SMALL_LOG, small_settings


@pytest.mark.parametrize("log_bytes", [0, SMALL_LOG])
def test_a_small_log_on_this_machine_gets_quick_settings(log_bytes: int) -> None:
    settings = small_settings("local[2]", log_bytes, "-Da=b")
    assert settings["spark.driver.extraJavaOptions"].startswith("-Da=b -XX:")
    assert settings["spark.sql.shuffle.partitions"] == "2"


@pytest.mark.parametrize(
    ("master", "log_bytes"), [("local[*]", SMALL_LOG + 1), ("local[*]", None), ("spark://host:7077", 1)]
)
def test_a_large_or_unknown_log_or_a_cluster_gets_none(master: str, log_bytes: int | None) -> None:
    assert small_settings(master, log_bytes, "") == {}
