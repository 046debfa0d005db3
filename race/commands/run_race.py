"""``rewindmq race run``: play one race and compare its outcome with the documented one."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rewindmq.client.core.remedy import Remedy
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.process.options import positive_factor, positive_int
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.protocol.text import escape_lines
from rewindmq.race.commands.list_races import outcome_text

if TYPE_CHECKING:
    from rewindmq.race.play.run import Plan, PlayOutcome
    from rewindmq.race.report.meta import ReportMeta

EPILOG: Final = """\
examples:
  rewindmq race run R1                             4.9.4 loses a reset; simulated
  rewindmq race run R1 --repeat 1000               the same with a thousand seeds
  rewindmq race run R1 --held --report r1.html     real processes, the order enforced by holding frames
  rewindmq race run R1 --real                      real processes in real time, more than a minute
  rewindmq race run R1 --profile epoch --mode fenced
  rewindmq race run R1 --remedy F1                 4.9.4 with one remedy: kept
  rewindmq race run R4 --remedy F8                 another race: F8 prevents L2, but not L3
  rewindmq race run R8-KILL --held --client-command 'java -jar consumer.jar {namesrv} {topic} {group}'

exit codes: 0 every run had the documented outcome, 1 a run had another outcome or could not be played,
2 wrong usage, 130 interrupted
"""
_MAX_WIDTH: Final = 120
_SHOWN_NUMBERS: Final = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("id", metavar="ID", help="id of the race, from `rewindmq race list`")
    parser.add_argument("--profile", choices=list(Profile), type=Profile, help="profile of the consumers")
    parser.add_argument("--mode", choices=list(ResetMode), type=ResetMode, help="mode of the reset")
    parser.add_argument(
        "--remedy", choices=list(Remedy), type=Remedy, help="one remedy to add to the consumers"
    )
    stage = parser.add_argument_group("stage").add_mutually_exclusive_group()
    stage.add_argument("--simulated", action="store_true", help="one process, virtual time (default)")
    stage.add_argument(
        "--held", action="store_true", help="real processes; frames are held to enforce the order"
    )
    stage.add_argument(
        "--scaled", type=positive_factor, metavar="X", help="real processes, every wait X times as long"
    )
    stage.add_argument("--real", action="store_true", help="real processes in real time")
    parser.add_argument("--seed", type=int, metavar="N", help="seed of the simulation (default: 1)")
    parser.add_argument(
        "--repeat", type=positive_int, default=1, metavar="N", help="play the race N times, with N seeds"
    )
    parser.add_argument(
        "--jobs", type=positive_int, metavar="N", help="runs at a time (default: chosen for this machine)"
    )
    outside = parser.add_argument_group(
        "with programs other than RewindMQ's (needs --held, --scaled or --real)"
    )
    outside.add_argument(
        "--client-command",
        metavar="CMD",
        help="command that starts a consumer, with the placeholders {namesrv}, {topic} and {group};"
        " frames are held as with --held, but the program's own waits are not shortened",
    )
    outside.add_argument(
        "--namesrv", metavar="ADDR", help="name server of a running cluster on which no race was played yet"
    )
    parser.add_argument(
        "--report",
        type=Path,
        metavar="FILE",
        help="write the run as HTML (of several, the first with an undocumented outcome), or only its picture"
        " if FILE ends in .svg",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")


def run(arguments: argparse.Namespace) -> int:
    """Play the race, judge it and print the outcome; returns the exit code.

    Raises:
        RaceError: no such race exists, or not for this profile and mode; or the report cannot be written.
    """
    from rewindmq.race.play.run import play_simulated
    from rewindmq.race.play.run_many import default_jobs, play_many
    from rewindmq.race.report.output import require_writable

    plan = _plan(arguments)
    if arguments.report is not None:
        require_writable(arguments.report)
    first = 1 if arguments.seed is None else arguments.seed
    numbers = range(first, first + arguments.repeat)
    jobs = arguments.jobs or default_jobs(plan, arguments.repeat)
    with _progress(plan, len(numbers), is_silent=arguments.json) as on_done:
        outcomes = play_many(plan, numbers, jobs, on_done)
    shown = next((outcome for outcome in outcomes if not outcome.is_documented), outcomes[0])
    if plan.staging == "simulated" and not len(shown.history):
        # Worker processes do not return histories, so the run is simulated again.
        shown = play_simulated(plan, shown.number)
    if arguments.report is not None:
        _write_report(arguments.report, shown)
    if arguments.json:
        print(json.dumps(_to_json(plan, outcomes), indent=2))
    else:
        print(escape_lines(_lines(plan, outcomes, shown)))
    return 0 if all(outcome.is_documented for outcome in outcomes) else 1


def _plan(arguments: argparse.Namespace) -> Plan:
    from rewindmq.race.errors import RaceError
    from rewindmq.race.play.run import HELD_TIME_SCALE, Plan, Staging
    from rewindmq.race.scenario.catalogue import find_scenario
    from rewindmq.race.scenario.choose import choose_case
    from rewindmq.race.stage.foreign import ALL_REWINDMQ, Outside

    scenario = find_scenario(arguments.id)
    remedy = arguments.remedy
    profile, mode = choose_case(scenario, arguments.profile, arguments.mode, remedy)
    staging, time_scale = Staging.SIMULATED, 1.0
    if arguments.held:
        staging, time_scale = Staging.HELD, HELD_TIME_SCALE
    elif arguments.scaled is not None:
        staging, time_scale = Staging.SCALED, arguments.scaled
    elif arguments.real:
        staging = Staging.REAL
    if arguments.seed is not None and staging is not Staging.SIMULATED:
        raise RaceError(f"--seed is for simulated runs; a run with --{staging} has no seed")
    outside = Outside(arguments.client_command, arguments.namesrv)
    if outside != ALL_REWINDMQ:
        if staging is Staging.SIMULATED:
            raise RaceError("other programs do not run under virtual time: add --held, --scaled X or --real")
        if staging is Staging.HELD:
            time_scale = 1.0
        if outside.client_command is not None and remedy is not None:
            raise RaceError(
                "--remedy changes RewindMQ's own clients, and --client-command names another client"
            )
        if outside.namesrv is not None and arguments.repeat > 1:
            raise RaceError("--repeat needs a new cluster each time, and --namesrv names one cluster")
    return Plan(scenario.id, profile, mode, staging, time_scale, outside, remedy)


@contextmanager
def _progress(plan: Plan, count: int, *, is_silent: bool) -> Iterator[Callable[[PlayOutcome], None]]:
    """Show a progress bar on the terminal if there is more than one run."""
    if is_silent or count == 1 or not sys.stdout.isatty():
        yield lambda outcome: None
        return
    from rewindmq.cluster.demo.display import Display

    done = 0
    with Display().step(f"{plan.scenario_id} {plan.profile} {plan.mode} {plan.staging}", count) as advance:

        def note(outcome: PlayOutcome) -> None:
            nonlocal done
            done += 1
            advance(done)

        yield note


def _meta(outcome: PlayOutcome) -> ReportMeta:
    from rewindmq.race.report.meta import ReportMeta

    plan, scenario = outcome.plan, outcome.plan.scenario
    facts = {
        "profile": _client(plan),
        "mode": str(plan.mode),
        "stage": str(plan.staging),
        "seed" if plan.staging == "simulated" else "run": str(outcome.number),
        "documented": outcome_text(plan.documented),
    }
    text = (
        f"Releases: {scenario.versions}. Closed by: {scenario.closed_by}. More: docs/race/{scenario.id}.md."
    )
    return ReportMeta(f"{scenario.id}: {scenario.title}", facts, text)


def _write_report(path: Path, outcome: PlayOutcome) -> None:
    from rewindmq.race.report import render_html, render_svg, write_report

    render = render_svg if path.suffix == ".svg" else render_html
    write_report(path, render(outcome.history, outcome.verdict, _meta(outcome)))


def _lines(plan: Plan, outcomes: Sequence[PlayOutcome], shown: PlayOutcome) -> list[str]:
    import shutil

    from rewindmq.race.report.text import render_text

    lines: list[str] = []
    if shown.error is None and (len(outcomes) == 1 or not shown.is_documented):
        width = min(shutil.get_terminal_size().columns, _MAX_WIDTH)
        lines += render_text(shown.history, shown.verdict, _meta(shown), width).split("\n")
    if len(outcomes) == 1:
        lines.append(f"{plan.scenario_id}, {_setting(plan)}: {_result(shown)}, {shown.seconds:.2f} s")
    else:
        lines += _summary(plan, outcomes)
    return lines


def _setting(plan: Plan) -> str:
    scale = f" at {plan.time_scale:g}" if plan.time_scale != 1.0 else ""
    return f"{_client(plan)}, {plan.mode}, {plan.staging}{scale}"


def _client(plan: Plan) -> str:
    """``v49``, or ``v49 with F1``."""
    return str(plan.profile) if plan.remedy is None else f"{plan.profile} with {plan.remedy}"


def _result(outcome: PlayOutcome) -> str:
    if outcome.error is not None:
        return f"could not be played: {outcome.error}"
    text = outcome_text(outcome.verdict.losses)
    if outcome.is_documented:
        return f"{text}, as documented"
    return f"{text}, but {outcome_text(outcome.plan.documented)} is documented"


def _summary(plan: Plan, outcomes: Sequence[PlayOutcome]) -> list[str]:
    good = sum(outcome.is_documented for outcome in outcomes)
    seconds = sum(outcome.seconds for outcome in outcomes) / len(outcomes)
    slowest = max(outcome.seconds for outcome in outcomes)
    documented = f"{good} of {len(outcomes)} as documented ({outcome_text(plan.documented)})"
    times = f"{seconds:.3f} s each, the slowest {slowest:.3f} s"
    lines = [f"{plan.scenario_id}, {_setting(plan)}: {documented}, {times}"]
    kind = "seeds" if plan.staging == "simulated" else "runs"
    others = Counter(_result(outcome) for outcome in outcomes if not outcome.is_documented)
    for result, count in others.most_common():
        numbers = [str(outcome.number) for outcome in outcomes if _result(outcome) == result]
        which = " ".join(numbers[:_SHOWN_NUMBERS]) + (" ..." if len(numbers) > _SHOWN_NUMBERS else "")
        lines.append(f"  {count} times {result}: {kind} {which}")
    return lines


def _to_json(plan: Plan, outcomes: Sequence[PlayOutcome]) -> dict[str, Any]:
    return {
        "id": plan.scenario_id,
        "profile": plan.profile,
        "remedy": plan.remedy,
        "mode": plan.mode,
        "stage": plan.staging,
        "timeScale": plan.time_scale,
        "documented": sorted(plan.documented),
        "asDocumented": sum(outcome.is_documented for outcome in outcomes),
        "runs": [
            {
                "number": outcome.number,
                "outcome": sorted(outcome.verdict.losses),
                "asDocumented": outcome.is_documented,
                "error": outcome.error,
                "seconds": round(outcome.seconds, 4),
                "violations": [
                    {"law": violation.law, "loss": violation.loss, "at": violation.at, "text": violation.text}
                    for violation in outcome.verdict.violations
                ],
            }
            for outcome in outcomes
        ],
    }
