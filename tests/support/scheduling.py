"""Pytest plugin: how tests are spread over processes, and how long each may take."""

from __future__ import annotations

from typing import Final

import pytest

# The tests of one Spark session; a second session costs more than a second process saves.
SPARK_GROUP: Final = "spark"
_SPARK_FIXTURE: Final = "spark"
# Seconds until a test that hangs fails. They only end a hang: no test is near them.
_SPARK_SECONDS: Final = 600
_LONG_SECONDS: Final = 1_200
_INTEROP_SECONDS: Final = 2_400


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Send the tests of a file to one process, all that use Spark to the same one, Spark's first."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            group = SPARK_GROUP if _uses_spark(item) else item.nodeid.partition("::")[0]
            item.add_marker(pytest.mark.xdist_group(group))
        if item.get_closest_marker("timeout") is None:
            if item.get_closest_marker("interop") is not None:
                item.add_marker(pytest.mark.timeout(_INTEROP_SECONDS))
            elif item.get_closest_marker("long") is not None:
                item.add_marker(pytest.mark.timeout(_LONG_SECONDS))
            elif _uses_spark(item):
                item.add_marker(pytest.mark.timeout(_SPARK_SECONDS))
    items.sort(key=lambda item: not _uses_spark(item))


def _uses_spark(item: pytest.Item) -> bool:
    return isinstance(item, pytest.Function) and _SPARK_FIXTURE in item.fixturenames
