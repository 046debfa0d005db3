"""``rewindmq race explore --fault table``: how many random schedules find each deliberate fault."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Final

from rewindmq.cluster.signals import stopped_like_ctrl_c
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.explore.model.faults import FAULTS
from rewindmq.race.explore.model.models import find_model
from rewindmq.race.explore.schedule_file import NO_FAULT
from rewindmq.race.explore.search.job import Setting
from rewindmq.race.explore.search.search import Findings, Search
from rewindmq.race.explore.search.strategy import Strategy

_HEAD: Final = (
    "| fault | model, consumers | uniform: first | share | PCT: first | share |\n|---|---|---|---|---|---|"
)


@dataclass(frozen=True, slots=True)
class FaultRow:
    """What the random searches of one fault found.

    Attributes:
        fault: name of the fault, or ``NO_FAULT`` for the same search without a fault.
        found: findings by strategy.
    """

    fault: str
    setting: Setting
    found: dict[Strategy, Findings]

    def to_markdown(self) -> str:
        """Return the row of a Markdown table."""
        cells = [self.fault, f"`{self.setting.model.name}`, {self.setting.profile}"]
        for strategy in (Strategy.UNIFORM, Strategy.PCT):
            findings = self.found[strategy]
            cells.append(f"{findings.first_number:,}" if findings.bad else f"> {findings.schedules:,}")
            cells.append(f"{findings.bad / findings.schedules:.1%}")
        return f"| {' | '.join(cells)} |"

    def to_json(self) -> dict[str, Any]:
        """Return the row as JSON; ``first`` is null if no schedule broke a law."""
        return {
            "fault": self.fault,
            "model": self.setting.model.name,
            "profile": str(self.setting.profile),
            "late": self.setting.budget,
            **{
                str(strategy): {
                    "schedules": findings.schedules,
                    "first": findings.first_number or None,
                    "broken": findings.bad,
                }
                for strategy, findings in self.found.items()
            },
        }


def print_fault_table(schedules: int, seed: int, *, is_json: bool) -> int:
    """Search for each fault with each strategy, and print one row per fault; returns the exit code.

    The last rows are the same searches without a fault.
    The exit code is 1 if a fault was not found with any strategy, otherwise 0.

    Raises:
        RaceError: two runs of one schedule differed, or a worker failed.
    """
    is_complete = True
    if not is_json:
        print(_HEAD, flush=True)
    with stopped_like_ctrl_c():
        for fault, setting in _settings():
            row = search_fault(fault, setting, schedules, seed)
            print(json.dumps(row.to_json()) if is_json else row.to_markdown(), flush=True)
            is_complete &= fault == NO_FAULT or any(findings.bad for findings in row.found.values())
    return 0 if is_complete else 1


def search_fault(fault: str, setting: Setting, schedules: int, seed: int) -> FaultRow:
    """Run the same number of schedules with each strategy.

    One worker process runs them, so they end in the order of their numbers, and the row depends only on
    the code and the seed.
    """
    found = {strategy: Search(setting, 1).run_some(schedules, seed, strategy) for strategy in Strategy}
    return FaultRow(fault, setting, found)


def _settings() -> Iterator[tuple[str, Setting]]:
    """Yield each fault with its setting, then each of these settings without a fault."""
    without = {}
    for name, fault in FAULTS.items():
        model = find_model(fault.model)
        yield name, Setting(model, ResetMode.FENCED, fault.profile, model.budget, fault.enter)
        without[model.name, fault.profile] = Setting(
            model, ResetMode.FENCED, fault.profile, model.budget, nullcontext
        )
    for setting in without.values():
        yield NO_FAULT, setting
