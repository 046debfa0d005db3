"""``rewindmq race replay``: run a schedule file again, step for step."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rewindmq.protocol.text import escape_lines

if TYPE_CHECKING:
    from rewindmq.race.explore.schedule_file import SavedSchedule
    from rewindmq.race.explore.search.job import Setting

EPILOG: Final = """\
Schedule files are written by: rewindmq race explore MODEL --save FILE

examples:
  rewindmq race replay lost.schedule
  rewindmq race replay lost.schedule --report lost.html

exit codes: 0 the same law is broken again, 1 it is not broken, a step no longer exists or the file cannot be
read, 2 wrong usage
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("file", type=Path, metavar="FILE", help="a schedule file")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the run as HTML")
    parser.add_argument("--json", action="store_true", help="print the verdict as JSON, without the steps")


def run(arguments: argparse.Namespace) -> int:
    """Run the schedule, print its steps and the verdict; returns the exit code.

    Raises:
        RaceError: the file cannot be read, or names a step that this code does not have.
    """
    from rewindmq.race.errors import RaceError
    from rewindmq.race.explore.schedule_file import code_fingerprint, read_schedule
    from rewindmq.race.explore.search.job import ScheduleJob
    from rewindmq.race.explore.search.pool import Pool
    from rewindmq.race.explore.transcript import describe, save_report
    from rewindmq.race.report.output import require_writable

    if arguments.report is not None:
        require_writable(arguments.report)
    schedule = read_schedule(arguments.file)
    is_same_code = schedule.code == code_fingerprint()
    setting = _setting(schedule)
    with Pool(setting, 1) as pool:
        (outcome,) = pool.run([ScheduleJob(names=schedule.steps, is_strict=True, with_account=True)])
    if outcome.error:
        hint = "" if is_same_code else " (the code has changed since the schedule was saved)"
        raise RaceError(f"{arguments.file}: {outcome.error}{hint}")
    assert outcome.account is not None
    law = schedule.found.partition(":")[0]
    is_again = law in outcome.laws
    found = [f"{broken.law}: {broken.text}" for broken in outcome.broken]
    if arguments.json:
        verdict = {
            "found": found,
            "again": is_again,
            "same_code": is_same_code,
            "digest": outcome.account.digest,
        }
        print(json.dumps(verdict))
    else:
        print(escape_lines([*describe(outcome.account), *(found or ["no law broken"])]))
        print(
            f"trace {outcome.account.digest}"
            + ("" if is_same_code else "; the code has changed since the schedule was saved")
        )
        if not is_again:
            print(f"not broken this time: {schedule.found}")
    if arguments.report is not None:
        save_report(arguments.report, outcome, setting)
    return 0 if is_again else 1


def _setting(schedule: SavedSchedule) -> Setting:
    from contextlib import nullcontext

    from rewindmq.race.explore.model.faults import find_fault
    from rewindmq.race.explore.model.models import find_model
    from rewindmq.race.explore.schedule_file import NO_FAULT
    from rewindmq.race.explore.search.job import Setting

    return Setting(
        find_model(schedule.model),
        schedule.mode,
        schedule.profile,
        schedule.late,
        nullcontext if schedule.fault == NO_FAULT else find_fault(schedule.fault).enter,
    )
