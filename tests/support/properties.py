"""Property tests try the same examples in every run, whatever else the process has imported."""

from __future__ import annotations

from functools import cache

import pytest
from _pytest.mark import ParameterSet
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

_PROFILE = "rewindmq"
_EVERY = pytest.mark.slow(full_only="fewer examples are tried")


def few_and_all(few: int, every: int) -> list[ParameterSet]:
    """Return the numbers of examples that a slow property test tries, for ``pytest.mark.parametrize``.

    The default group tries the few, ``--full`` all of them. CI tries a quarter where that is many more.
    """
    quarter = every // 4
    of_ci = [pytest.param(quarter, id=f"{quarter} examples", marks=pytest.mark.slow)]
    return [
        pytest.param(few, id=f"{few} examples"),
        *(of_ci if quarter > 2 * few else ()),
        pytest.param(every, id=f"{every} examples", marks=_EVERY),
    ]


@cache
def _no_module_is_local(path: str) -> bool:
    return False


def settle() -> None:
    """Load the settings of the suite's property tests, for this process.

    Hypothesis draws now and then a constant from the source of the modules that are loaded: by then the
    examples depend on the tests that ran before, derandomised or not. Here it draws none.
    """
    vars(providers)["is_local_module_file"] = _no_module_is_local
    settings.register_profile(
        _PROFILE,
        derandomize=True,
        deadline=None,
        database=None,
        max_examples=60,
        # It measures wall-clock time, so a test fails on a busy machine.
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile(_PROFILE)
