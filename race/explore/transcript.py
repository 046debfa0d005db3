"""Describes a schedule step by step as text, or as an HTML report."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rewindmq.race.checker.verdict import NOTHING_TO_JUDGE
from rewindmq.race.explore.search.job import Setting
from rewindmq.race.explore.search.laws import judge_resets
from rewindmq.race.explore.search.run import Account, ScheduleOutcome
from rewindmq.race.history import Event, History
from rewindmq.race.report import ReportMeta, render_html, write_report

# Details that are the same in all events of a model, or are part of the step's name.
_LEFT_OUT: Final = frozenset(
    {"client_id", "client", "group", "topic", "broker", "broker_name", "count", "timestamp", "mode"}
)


def describe(account: Account) -> Iterator[str]:
    """Yield one line per step, also for steps without an alternative, followed by the events it caused."""
    events = [event for event in History.from_lines(account.history) if event.at >= account.opened_at - 1e-9]
    position = 0
    steps = account.steps
    for number, (at, name) in enumerate(steps):
        yield f"{at - account.opened_at:8.3f}  {name}"
        following = steps[number + 1][0] if number + 1 < len(steps) else float("inf")
        while position < len(events) and events[position].at < following - 1e-9:
            yield f"{'':10}  {_event_text(events[position])}"
            position += 1


def save_report(path: Path, outcome: ScheduleOutcome, setting: Setting) -> None:
    """Write the run of a schedule as HTML.

    Of several resets, it shows the first that broke a law, up to the start of the next one. If none broke a
    law, it shows the last.

    Raises:
        RaceError: the file cannot be written.
    """
    assert outcome.account is not None
    events = list(History.from_lines(outcome.account.history))
    judged = judge_resets(events, is_at_rest=False)
    shown = next((one for one in judged if one.broken), judged[-1] if judged else None)
    history = History(events if shown is None else shown.events)
    verdict = NOTHING_TO_JUDGE if shown is None else shown.verdict
    facts = {
        "mode": str(setting.mode),
        "profile": str(setting.profile),
        "late messages": f"at most {setting.budget}",
    }
    meta = ReportMeta(f"{setting.model.name}: {setting.model.title}", facts)
    write_report(path, render_html(history, verdict, meta))


def _event_text(event: Event) -> str:
    details = " ".join(f"{name}={value}" for name, value in event.details.items() if name not in _LEFT_OUT)
    return f"{event.process}: {event.kind} {details}".rstrip()
