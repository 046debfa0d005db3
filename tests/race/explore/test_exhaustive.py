"""Every schedule of the small models. CI runs the searches that take less than 15 s."""

from __future__ import annotations

import pytest

from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.explore.search.search import Search
from tests.race.explore.explore_settings import FULL, setting_of


@pytest.mark.parametrize(
    "mode",
    [
        pytest.param(ResetMode.CLASSIC, marks=FULL),
        pytest.param(ResetMode.SERVER, marks=pytest.mark.slow),
        pytest.param(ResetMode.FENCED, marks=pytest.mark.slow),
    ],
)
def test_one_reset_with_one_late_message(mode: ResetMode) -> None:
    findings = Search(setting_of("one-reset", mode, late=1), 2).run_all()
    assert findings.is_complete
    assert (findings.bad > 0) == (mode is not ResetMode.FENCED)


@pytest.mark.parametrize(
    ("model", "late"),
    [
        pytest.param("two-resets", 1, marks=FULL),
        pytest.param("crash-consumer", 1, marks=FULL),
        pytest.param("crash-broker", 0, marks=pytest.mark.slow),
        pytest.param("join", 1, marks=FULL),
    ],
)
def test_no_schedule_loses_a_fenced_reset(model: str, late: int) -> None:
    findings = Search(setting_of(model, ResetMode.FENCED, late=late), 2).run_all()
    assert findings.is_complete
    assert findings.bad == 0


@pytest.mark.parametrize(
    ("model", "late"),
    [
        pytest.param("crash-consumer", 1, marks=pytest.mark.slow),
        pytest.param("crash-broker", 0, marks=pytest.mark.slow),
    ],
)
def test_server_resets_are_lost_when_a_process_is_killed(model: str, late: int) -> None:
    findings = Search(setting_of(model, ResetMode.SERVER, late=late), 2, stop_at_first=True).run_all()
    assert findings.first is not None
