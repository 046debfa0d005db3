"""The table of faults tells what each strategy found, in Markdown and as JSON."""

from __future__ import annotations

import pytest

from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.commands.fault_table import FaultRow, search_fault
from rewindmq.race.explore.model.faults import FAULTS
from rewindmq.race.explore.search.search import Findings
from rewindmq.race.explore.search.strategy import Strategy
from tests.race.explore.explore_settings import setting_of

FLUSH = FAULTS["flush"]
SETTING = setting_of(FLUSH.model, ResetMode.FENCED, fault=FLUSH.enter)


def test_a_row_names_the_first_schedule_that_finds_the_fault_or_says_that_none_did() -> None:
    found = Findings(schedules=2_000, bad=30, first_number=1_234)
    row = FaultRow("flush", SETTING, {Strategy.UNIFORM: Findings(schedules=2_000), Strategy.PCT: found})
    assert row.to_markdown() == "| flush | `crash-broker`, epoch | > 2,000 | 0.0% | 1,234 | 1.5% |"
    assert row.to_json()["uniform"] == {"schedules": 2_000, "first": None, "broken": 0}
    assert row.to_json()["pct"] == {"schedules": 2_000, "first": 1_234, "broken": 30}


@pytest.mark.slow
def test_the_seed_determines_the_row() -> None:
    one, again = (search_fault("flush", SETTING, 64, 1) for _ in range(2))
    assert one.to_json() == again.to_json()
    assert all(findings.bad > 0 for findings in one.found.values())
