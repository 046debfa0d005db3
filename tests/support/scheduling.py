"""Pytest plugin: how tests are spread over processes, and how long each may take."""

from __future__ import annotations

from typing import Final

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling, Scheduling

# The tests of this folder share one Spark session; a second one costs more than a second process saves.
PIPELINE: Final = "tests/pipeline/"
# The tests of these files share stores that several brokers have written in turn, which takes minutes.
STORES: Final = frozenset({"tests/interop/test_pipeline_at_real_broker.py", "tests/interop/test_stores.py"})
# Most of a minute or more is waiting: they start first, so that no process waits for them at the end.
_LONGEST: Final = ("tests/soak/", "tests/race/play/")
# Seconds until a test that hangs fails. They only end a hang: no test is near them.
_SPARK_SECONDS: Final = 600
_SLOW_SECONDS: Final = 1_200
_INTEROP_SECONDS: Final = 2_400


class FileScheduling(LoadFileScheduling):  # type: ignore[misc]  # pytest-xdist is not typed
    """Sends the tests of a file to one process, and files that share what is expensive to the same one."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        if path in STORES:
            return min(STORES)
        return PIPELINE if path.startswith(PIPELINE) else path


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling | None:
    """Take the place of pytest-xdist's ``--dist loadfile``."""
    return FileScheduling(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start the longest tests first, and give slow tests more time before they count as hanging."""
    items.sort(key=lambda item: not item.nodeid.startswith(_LONGEST))
    for item in items:
        if item.get_closest_marker("timeout") is None:
            seconds = _seconds(item)
            if seconds is not None:
                item.add_marker(pytest.mark.timeout(seconds))


def _seconds(item: pytest.Item) -> int | None:
    if item.get_closest_marker("interop") is not None:
        return _INTEROP_SECONDS
    if item.get_closest_marker("slow") is not None:
        return _SLOW_SECONDS
    return _SPARK_SECONDS if item.nodeid.startswith(PIPELINE) else None
