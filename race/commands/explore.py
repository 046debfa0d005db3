"""``rewindmq race explore``: search the interleavings of a model."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.process.options import positive_int
from rewindmq.protocol.reset_mode import ResetMode, default_mode
from rewindmq.race.explore.search.strategy import Strategy

if TYPE_CHECKING:
    from rewindmq.race.explore.search.job import Setting
    from rewindmq.race.explore.search.run import ScheduleOutcome
    from rewindmq.race.explore.search.search import Findings

DEFAULT_SCHEDULES: Final = 1_000

EPILOG: Final = """\
Without MODEL, the command lists the models. The default profiles are v49 in classic mode, v53 in server mode
and epoch in fenced mode.

examples:
  rewindmq race explore one-reset --exhaustive
  rewindmq race explore two-resets --mode fenced --exhaustive --late 1
  rewindmq race explore large --mode fenced --schedules 5000 --seed 7
  rewindmq race explore one-reset --save lost.schedule
  rewindmq race explore crash-broker --mode fenced --fault flush
  rewindmq race explore --fault table --schedules 1000

exit codes: 0 the result is as expected (classic and server modes break a law, fenced mode does not, a --fault
is found), or docs/race/explore.md names no expected result; 1 another result or an error; 2 wrong usage;
130 interrupted
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument(
        "model", nargs="?", metavar="MODEL", help="the model to explore; without it, list the models"
    )
    parser.add_argument(
        "--mode",
        choices=[str(mode) for mode in ResetMode],
        help="how resets are made (default: that of the profile's release; with --fault: fenced)",
    )
    parser.add_argument(
        "--profile", choices=[str(profile) for profile in Profile], help="profile of the consumers"
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--exhaustive", action="store_true", help="run every schedule, except equivalent ones")
    how.add_argument(
        "--schedules",
        type=positive_int,
        metavar="N",
        help="draw N random schedules; one that is drawn again is not run again"
        f" (default: {DEFAULT_SCHEDULES})",
    )
    parser.add_argument(
        "--seed", type=int, default=1, metavar="S", help="seed of the random schedules (default: 1)"
    )
    parser.add_argument(
        "--strategy",
        choices=[str(strategy) for strategy in Strategy],
        default=str(Strategy.PCT),
        help="how random schedules pick steps: by random priorities that change at a few random moments"
        " (probabilistic concurrency testing), or every possible step alike (default: pct)",
    )
    parser.add_argument(
        "--late", type=_count, metavar="K", help="how many messages may be late in one schedule"
    )
    parser.add_argument(
        "--jobs",
        type=positive_int,
        metavar="N",
        default=os.cpu_count() or 1,
        help="number of processes (default: one per core)",
    )
    parser.add_argument(
        "--fault",
        metavar="NAME",
        help="put a deliberate fault into the fencing; 'list' prints the faults, 'table' how many random"
        " schedules find each of them",
    )
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the shortest failing schedule")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write that schedule's run as HTML")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Search, and print the result; returns the exit code.

    Raises:
        RaceError: no such model or fault, or two runs of one schedule differed.
        OSError: a file cannot be written.
    """
    if arguments.fault == "list":
        return _list_faults(arguments)
    if arguments.fault == "table":
        from rewindmq.race.commands.fault_table import print_fault_table

        return print_fault_table(
            arguments.schedules or DEFAULT_SCHEDULES, arguments.seed, is_json=arguments.json
        )
    if arguments.model is None:
        return _list_models(arguments)
    from rewindmq.cluster.signals import stopped_like_ctrl_c
    from rewindmq.race.explore.search.expectation import Expectation, expected
    from rewindmq.race.explore.search.search import Search
    from rewindmq.race.report.output import require_writable

    setting = _setting(arguments)
    for path in (arguments.save, arguments.report):
        if path is not None:
            require_writable(path)
    progress = _Progress(is_silent=arguments.json)
    search = Search(setting, arguments.jobs, progress.show, stop_at_first=arguments.fault is not None)
    with stopped_like_ctrl_c():
        if arguments.exhaustive:
            findings = search.run_all()
        else:
            findings = search.run_some(
                arguments.schedules or DEFAULT_SCHEDULES, arguments.seed, Strategy(arguments.strategy)
            )
        progress.end()
        shortest = _shorten(arguments, setting, findings)
    wanted = expected(setting, arguments.fault)
    found = Expectation.BROKEN if findings.bad else Expectation.KEPT
    is_expected = wanted is None or found is wanted
    _print(arguments, setting, findings, shortest, is_expected=is_expected)
    return 0 if is_expected else 1


def _count(text: str) -> int:
    """Parse a whole number of at least 0."""
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{number} is less than 0")
    return number


def _setting(arguments: argparse.Namespace) -> Setting:
    from contextlib import nullcontext

    from rewindmq.race.explore.model.faults import find_fault
    from rewindmq.race.explore.model.models import DEFAULT_PROFILES, find_model
    from rewindmq.race.explore.search.job import Setting

    model = find_model(arguments.model)
    fault = None if arguments.fault is None else find_fault(arguments.fault)
    asked = None if arguments.profile is None else Profile(arguments.profile)
    own = ResetMode.FENCED if fault is not None else default_mode(asked or Profile.V49)
    mode = own if arguments.mode is None else ResetMode(arguments.mode)
    profile = fault.profile if fault is not None else DEFAULT_PROFILES[mode]
    return Setting(
        model,
        mode,
        profile if asked is None else asked,
        model.budget if arguments.late is None else arguments.late,
        nullcontext if fault is None else fault.enter,
    )


def _shorten(arguments: argparse.Namespace, setting: Setting, findings: Findings) -> ScheduleOutcome | None:
    """Shorten the failing schedule, and write the requested files; return None if no schedule fails."""
    from rewindmq.race.explore.search.job import ScheduleJob
    from rewindmq.race.explore.search.pool import Pool
    from rewindmq.race.explore.search.shrink import prescribed, shrink
    from rewindmq.race.explore.transcript import save_report

    if findings.first is None:
        return None
    with Pool(setting, arguments.jobs) as pool:
        shortest = shrink(pool, findings.first)
        if arguments.report is not None:
            (outcome,) = pool.run(
                [ScheduleJob(names=prescribed(shortest), is_strict=True, with_account=True)]
            )
            save_report(arguments.report, outcome, setting)
    if arguments.save is not None:
        from rewindmq.race.explore.schedule_file import NO_FAULT, SavedSchedule, code_fingerprint

        schedule = SavedSchedule(
            setting.model.name,
            setting.mode,
            setting.profile,
            setting.budget,
            arguments.fault or NO_FAULT,
            code_fingerprint(),
            _sentence(shortest),
            prescribed(shortest),
        )
        arguments.save.write_text(schedule.to_text(), "utf-8")
    return shortest


def _sentence(outcome: ScheduleOutcome) -> str:
    broken = outcome.broken[0]
    return f"{broken.law}: {broken.text}"


class _Progress:
    """Progress line on a terminal; nothing is shown elsewhere."""

    def __init__(self, *, is_silent: bool) -> None:
        self._is_shown = not is_silent and sys.stderr.isatty()
        self._next = 0.0

    def show(self, findings: Findings) -> None:
        """Show the findings so far."""
        if self._is_shown and findings.seconds >= self._next:
            self._next = findings.seconds + 0.2
            text = f"{findings.schedules:,} schedules, {findings.rate:.0f}/s, {findings.bad:,} break a law"
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()

    def end(self) -> None:
        """Clear the line."""
        if self._is_shown:
            sys.stderr.write("\r\x1b[K")


def _print(
    arguments: argparse.Namespace,
    setting: Setting,
    findings: Findings,
    shortest: ScheduleOutcome | None,
    *,
    is_expected: bool,
) -> None:
    from rewindmq.race.explore.search.shrink import prescribed

    if arguments.json:
        value: dict[str, Any] = {
            "model": setting.model.name,
            "mode": str(setting.mode),
            "profile": str(setting.profile),
            "late": setting.budget,
            "fault": arguments.fault,
            "schedules": findings.schedules,
            "drawn_again": findings.known,
            "equivalent": findings.equivalent,
            "complete": findings.is_complete,
            "run_twice": findings.repeated,
            "seconds": round(findings.seconds, 3),
            "per_second": round(findings.rate, 1),
            "run_per_second": round(findings.run_rate, 1),
            "broken": dict(sorted(findings.broken.items())),
            "found": None if shortest is None else _sentence(shortest),
            "steps": None if shortest is None else prescribed(shortest),
            "expected": is_expected,
        }
        print(json.dumps(value))
        return
    every = "every schedule" if findings.is_complete else "some schedules"
    fault = "" if arguments.fault is None else f", fault {arguments.fault}"
    print(
        f"{setting.model.name}, {setting.mode}, {setting.profile}{fault}: {every},"
        f" late messages in each: at most {setting.budget}"
    )
    if arguments.exhaustive:
        counts = f"{findings.schedules:,} schedules ({findings.equivalent:,} equivalent ones stopped early)"
        rates = f"{findings.rate:.0f}/s"
    else:
        counts = f"{findings.schedules:,} schedules drawn ({findings.known:,} drawn again)"
        rates = f"{findings.rate:.0f}/s drawn, {findings.run_rate:.0f}/s different and run"
    print(
        f"{counts} in {findings.seconds:.1f} s, {rates};"
        f" {findings.repeated} of them run twice, with identical traces"
    )
    if shortest is None:
        print("no law broken")
    else:
        laws = ", ".join(f"{law} {count:,}" for law, count in sorted(findings.broken.items()))
        print(f"{findings.bad:,} break a law ({laws}), the first was number {findings.first_number:,}")
        print(_sentence(shortest))
        steps = prescribed(shortest)
        if steps:
            differing = f"{shortest.deviations} of {len(steps)} choices (*) differ from the default order"
            print(f"shortest schedule, {differing}:")
        else:
            print("shortest schedule: every step in the default order")
        for name, index in zip(steps, shortest.taken, strict=False):
            print(f"  {'*' if index else ' '} {name}")
    if not is_expected:
        print("not the expected result: " + ("a law was broken" if findings.bad else "no law was broken"))


def _list_models(arguments: argparse.Namespace) -> int:
    from rewindmq.race.explore.model.models import MODELS

    return _list({name: model.title for name, model in MODELS.items()}, is_json=arguments.json)


def _list_faults(arguments: argparse.Namespace) -> int:
    from rewindmq.race.explore.model.faults import FAULTS

    titles = {name: f"{fault.title} (found in {fault.model})" for name, fault in FAULTS.items()}
    return _list(titles, is_json=arguments.json)


def _list(titles: dict[str, str], *, is_json: bool) -> int:
    if is_json:
        print(json.dumps(titles))
    else:
        width = max(map(len, titles))
        for name, title in titles.items():
            print(f"{name:<{width}}  {title}")
    return 0
