"""The collector during a simulation: what is older is not looked at, and its settings come back."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from rewindmq.testing.simulation.garbage import collected_rarely

DEFAULT = (700, 10, 10)


@pytest.fixture(autouse=True)
def default_collector() -> Iterator[None]:
    """The collector as Python starts with it; the suite may have frozen its own objects."""
    thresholds, was_frozen = gc.get_threshold(), gc.get_freeze_count() > 0
    gc.unfreeze()
    gc.set_threshold(*DEFAULT)
    yield
    gc.set_threshold(*thresholds)
    if was_frozen:
        gc.freeze()


def test_older_objects_are_frozen_until_the_end_also_of_a_failure() -> None:
    def fail() -> None:
        with collected_rarely():
            assert gc.get_freeze_count() > 0
            assert gc.get_threshold() > DEFAULT
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert (gc.get_freeze_count(), gc.get_threshold()) == (0, DEFAULT)


def test_what_is_made_meanwhile_is_still_collected() -> None:
    with collected_rarely():
        ring: list[object] = []
        ring.append(ring)
        del ring
        assert gc.collect() >= 1


def test_a_program_that_froze_its_objects_keeps_them_frozen() -> None:
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with collected_rarely():
            assert gc.get_freeze_count() == frozen
        assert (gc.get_freeze_count(), gc.get_threshold()) == (frozen, DEFAULT)
    finally:
        gc.unfreeze()
