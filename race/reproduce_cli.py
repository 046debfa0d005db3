"""``scripts/reproduce_race``: play three runs that show how a reset is lost.

Exit codes: 0 all three runs ended as documented, 1 a run did not or could not be played, 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.remoting.process.options import positive_factor
from rewindmq.protocol.remoting.process.standard_streams import discard_unwritten, open_closed_streams
from rewindmq.protocol.text import escape_lines

if TYPE_CHECKING:
    from rewindmq.race.play.reproduce import Reproduction, Script

EPILOG: Final = """\
examples:
  scripts/reproduce_race                        in real time, a bit more than a minute
  scripts/reproduce_race --report lost.html     the same, with a page that shows the three runs side by side
  scripts/reproduce_race --time-scale 0.1       every wait ten times shorter

exit codes: 0 all three runs ended as documented, 1 a run ended otherwise or could not be played,
2 wrong usage, 130 interrupted
"""
_EXIT_INTERRUPTED: Final = 130
_WIDTH: Final = 72


def main(argv: Sequence[str] | None = None) -> int:
    """Reproduce the race; returns the exit code."""
    open_closed_streams()
    try:
        return _run(_parser().parse_args(argv))
    except KeyboardInterrupt:
        return _EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader of the output has closed the pipe.
        return 1
    except (RewindMQError, OSError) as error:
        print(f"reproduce_race: {error}", file=sys.stderr)
        return 1
    finally:
        discard_unwritten()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="reproduce_race",
        description="Lose an offset reset, with name server, broker and consumer as separate processes.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--time-scale",
        type=positive_factor,
        default=1.0,
        metavar="X",
        help="multiply every wait by X: 0.1 turns 10 s into 1 s (default: 1)",
    )
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the three runs as one HTML page")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    return parser


def _run(arguments: argparse.Namespace) -> int:
    from rewindmq.race.play.reproduce import SCRIPTS, reproduce
    from rewindmq.race.play.run_many import run_until_stopped

    if arguments.report is not None:
        from rewindmq.race.report.output import require_writable

        require_writable(arguments.report)

    def show_step(script: Script, seconds: float, text: str) -> None:
        if not arguments.json:
            print(f"{seconds:7.1f} s  {script.name:<10}  {text}", flush=True)

    if not arguments.json:
        for script in SCRIPTS:
            print(f"{script.name:<10}  {script.explanation}")
        print()
    results = run_until_stopped(lambda: reproduce(arguments.time_scale, show_step))
    if arguments.report is not None:
        _write_report(arguments.report, results)
    if arguments.json:
        print(json.dumps({"runs": [_to_json(result) for result in results]}, indent=2))
    else:
        print(escape_lines(_lines(results)))
    return 0 if all(result.is_documented for result in results) else 1


def _lines(results: Sequence[Reproduction]) -> list[str]:
    lines: list[str] = []
    for result in results:
        lines += ["", f"-- {result.script.name} ".ljust(_WIDTH, "-"), "", *_section(result)]
    lines += ["", *_table(results), ""]
    failed = [result.script.name for result in results if not result.is_documented]
    if failed:
        lines.append(f"Not as documented: {', '.join(failed)}")
    else:
        lines.append("All three runs ended as documented.")
    return lines


def _section(result: Reproduction) -> list[str]:
    from rewindmq.race.play.reproduce import steps

    script, began = result.script, result.reset_at
    lines = [f"{script.scenario_id}, profile {script.profile}: {script.explanation}.", ""]
    lines += [f"{event.at - began:+8.1f} s  {text}" for event, text in steps(result.history)]
    lines += ["", "stored offset, by seconds since the reset:", "", *_chart(result), ""]
    if result.verdict.violations:
        lines += [f"{violation.loss}: {violation.text}" for violation in result.verdict.violations]
    else:
        lines.append("kept: the stored offset was never ahead of the redelivery")
    lines.append(_lost_text(result))
    return lines


def _chart(result: Reproduction) -> list[str]:
    """Draw a bar for each stored offset."""
    changes = result.stored()
    top = max(offset for _, offset in changes) or 1
    width = _WIDTH - 20
    bars = ((at, offset, "#" * round(width * offset / top)) for at, offset in changes)
    return [f"{at:+8.1f} s {offset:>5}  {bar}".rstrip() for at, offset, bar in bars]


def _lost_text(result: Reproduction) -> str:
    began = f"a second consumer began at {result.restarted_at}"
    if not result.lost:
        return f"{began}; every message from {result.target} on was delivered again"
    first, last = result.lost[0], result.lost[-1]
    return f"{began}; never delivered again: {len(result.lost)} messages, {first} to {last}"


def _table(results: Sequence[Reproduction]) -> list[str]:
    rows = [["", "client", "case", "outcome", "documented", "second consumer at", "never redelivered"]]
    rows += [
        [
            result.script.name,
            result.script.profile,
            result.script.scenario_id,
            " ".join(sorted(result.verdict.losses)) or "kept",
            " ".join(sorted(result.script.documented)) or "kept",
            str(result.restarted_at),
            str(len(result.lost)),
        ]
        for result in results
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def _write_report(path: Path, results: Sequence[Reproduction]) -> None:
    from rewindmq.race.report.html import ReportedRun, render_comparison
    from rewindmq.race.report.meta import ReportMeta
    from rewindmq.race.report.output import write_report

    runs = [
        ReportedRun(
            result.history,
            result.verdict,
            ReportMeta(
                f"{result.script.name}: {result.script.explanation}",
                {
                    "race": result.script.scenario_id,
                    "profile": str(result.script.profile),
                    "stored before": str(result.old),
                    "reset to": str(result.target),
                    "second consumer began at": str(result.restarted_at),
                },
                f"{_lost_text(result).capitalize()}.",
            ),
        )
        for result in results
    ]
    text = (
        "Name server, broker and consumer as separate processes over real sockets. After the reset the"
        " consumer is killed and another one starts. The offset at which it starts shows whether the reset"
        " was lost."
    )
    write_report(path, render_comparison("How a reset is lost", runs, text))


def _to_json(result: Reproduction) -> dict[str, Any]:
    script = result.script
    return {
        "name": script.name,
        "id": script.scenario_id,
        "profile": script.profile,
        "mode": "classic",
        "outcome": sorted(result.verdict.losses),
        "documented": sorted(script.documented),
        "asDocumented": result.is_documented,
        "target": result.target,
        "storedBefore": result.old,
        "restartedAt": result.restarted_at,
        "neverRedelivered": list(result.lost),
        "stored": [{"seconds": round(at, 3), "offset": offset} for at, offset in result.stored()],
        "violations": [violation.text for violation in result.verdict.violations],
    }


if __name__ == "__main__":
    raise SystemExit(main())
