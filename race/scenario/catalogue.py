"""Every race of docs/spec/races.md E.3 to E.16."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from rewindmq.race.errors import RaceError
from rewindmq.race.scenario import (
    broadcasting,
    broker_restart,
    commit_flag,
    illegal_offset_late,
    illegal_offset_pending,
    joining_consumer,
    killed_consumer,
    lagging_position,
    leaving_consumer,
    lost_mark,
    lost_notification,
    mark_consumed_elsewhere,
    moving_queue,
    moving_queue_unnotified,
    orderly_listener,
    overlapping_resets,
    overtaken_target,
    overtaking_query,
    persist_in_wait,
    pull_consumer,
    pull_in_flight,
    refused_query,
    self_overwrite,
    slow_listener,
    stalled_result,
    starved_callbacks,
    stuck_consumer,
    swallowed_write,
    unassigned_queue,
    unordered_commits,
    zombie_queue,
)
from rewindmq.race.scenario.scenario import Scenario

SCENARIOS: Final[Mapping[str, Scenario]] = MappingProxyType(
    {
        module.SCENARIO.id: module.SCENARIO
        for module in (
            slow_listener,
            stalled_result,
            pull_in_flight,
            starved_callbacks,
            illegal_offset_late,
            illegal_offset_pending,
            zombie_queue,
            overlapping_resets,
            joining_consumer,
            lost_notification,
            moving_queue,
            moving_queue_unnotified,
            leaving_consumer,
            killed_consumer,
            unordered_commits,
            overtaking_query,
            commit_flag,
            broker_restart,
            persist_in_wait,
            refused_query,
            unassigned_queue,
            orderly_listener,
            pull_consumer,
            broadcasting,
            self_overwrite,
            stuck_consumer,
            lost_mark,
            mark_consumed_elsewhere,
            overtaken_target,
            lagging_position,
            swallowed_write,
        )
    }
)


def find_scenario(name: str) -> Scenario:
    """Return the race with this id; letter case does not matter.

    Raises:
        RaceError: no race has this id.
    """
    for scenario in SCENARIOS.values():
        if scenario.id.casefold() == name.casefold():
            return scenario
    close = difflib.get_close_matches(name.upper(), [known.upper() for known in SCENARIOS], n=1)
    known = {scenario_id.upper(): scenario_id for scenario_id in SCENARIOS}
    hint = f"; did you mean {known[close[0]]}?" if close else "; `rewindmq race list` names them all"
    raise RaceError(f"there is no race {name!r}{hint}")
