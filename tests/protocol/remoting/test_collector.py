"""The garbage collector of a server process; each case has a process of its own, as it changes its state."""

from __future__ import annotations

import subprocess
import sys

_BEGIN = """\
import gc
from rewindmq.protocol.remoting.process.collector import loading, tune_collector
collections = []
gc.callbacks.append(lambda phase, details: collections.append(phase))
def make_objects(count=10_000):
    return [[] for _ in range(count)]
"""


def run(program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _BEGIN + program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_nothing_is_collected_while_a_server_loads_and_nothing_loaded_is_visited_later() -> None:
    run(
        "with loading():\n"
        "    loaded = make_objects()\n"
        "assert not collections\n"
        "assert gc.isenabled()\n"
        "assert gc.get_freeze_count() > 10_000\n"
        "more = make_objects()\n"
        "assert collections\n"
    )


def test_the_collector_runs_again_after_a_failure_to_load() -> None:
    run(
        "try:\n"
        "    with loading():\n"
        "        import rewindmq.no_such_module\n"
        "except ImportError:\n"
        "    pass\n"
        "assert gc.isenabled()\n"
    )


def test_a_collector_that_the_program_has_disabled_stays_so() -> None:
    run(
        "gc.disable()\n"
        "with loading():\n"
        "    pass\n"
        "assert not gc.isenabled()\n"
        "assert not gc.get_freeze_count()\n"
    )


def test_a_server_collects_rarely_once_it_serves() -> None:
    run(
        "tune_collector()\n"
        "collections.clear()\n"
        "more = make_objects(5_000)\n"
        "assert not collections\n"
        "assert gc.isenabled()\n"
    )


def test_the_frequent_collections_of_a_server_visit_few_objects() -> None:
    """A collection of the two young generations visits what is younger than the last one of both."""
    run(
        "tune_collector()\n"
        "visited, kept = [], []\n"
        "def count(phase, details):\n"
        "    if phase == 'start' and details['generation'] < 2:\n"
        "        young = range(details['generation'] + 1)\n"
        "        visited.append(sum(len(gc.get_objects(each)) for each in young))\n"
        "gc.callbacks.append(count)\n"
        "for _ in range(30):\n"
        "    kept.append(make_objects())\n"
        "assert len(visited) >= 20\n"
        "assert max(visited) < 100_000\n"
    )


def test_nothing_is_collected_during_a_pause_and_the_collector_is_as_before_afterwards() -> None:
    run(
        "from rewindmq.protocol.remoting.process.collector import paused\n"
        "collections.clear()\n"
        "try:\n"
        "    with paused():\n"
        "        more = make_objects()\n"
        "        assert not collections\n"
        "        raise KeyError\n"
        "except KeyError:\n"
        "    assert gc.isenabled()\n"
        "gc.disable()\n"
        "with paused():\n"
        "    pass\n"
        "assert not gc.isenabled()\n"
    )
