"""Every schedule of the small models; takes minutes."""

from __future__ import annotations

import pytest
from explore_settings import setting_of

from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.explore.search import Search

pytestmark = pytest.mark.long


@pytest.mark.parametrize("mode", list(ResetMode))
def test_one_reset_with_one_late_message(mode: ResetMode) -> None:
    findings = Search(setting_of("one-reset", mode, late=1), 2).run_all()
    assert findings.is_complete
    assert (findings.bad > 0) == (mode is not ResetMode.FENCED)


@pytest.mark.parametrize("model", ["two-resets", "crash-consumer", "crash-broker", "join"])
def test_fenced_resets_are_kept(model: str) -> None:
    findings = Search(setting_of(model, ResetMode.FENCED), 2).run_all()
    assert findings.is_complete
    assert findings.bad == 0
