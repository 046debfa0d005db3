"""Runs every load for several rounds, interleaved with the echo, and prints one table.

Exit codes: 0 every target was reached, 1 a target was missed, 2 wrong arguments or a missing tool.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from bench.comparison import render_comparisons
from bench.loads import FULL_LOADS, LOADS, say
from bench.python_build import describe_python
from bench.table import Row, render, write_json

_BOTH, _BROKER, _NAMESRV, _WATCH, _TIMERS, _POP = "both", "broker", "namesrv", "watch", "timers", "pop"

_EXAMPLES = """examples:
  scripts/bench
  scripts/bench --only send --rounds 9
  scripts/bench --only hot-path,send,consume
  scripts/bench --only pipeline --full --rounds 2
  scripts/bench --vs-rocketmq
  scripts/bench --vs-rocketmq --rounds 9 --json rows.json
  scripts/bench --vs-rocketmq namesrv
  scripts/bench --vs-rocketmq watch
  scripts/bench --vs-rocketmq timers --rounds 3
  scripts/bench --vs-rocketmq pop
  scripts/bench --json rows.json"""


def _compare(part: str, rounds: int, scale: float, json_file: Path | None) -> int:
    # Imported here, because these modules need the interop tests' tools.
    from bench import vs_namesrv, vs_rocketmq, vs_rocketmq_pop, vs_rocketmq_timers, vs_rocketmq_watched
    from bench.compared_clusters import REWINDMQ, ROCKETMQ, ROCKETMQ_5, StartError
    from bench.java_load import LoadError
    from bench.pop_load import PopLoadError
    from bench.timer_load import TimerLoadError
    from tools.interop.toolchains import BuildFailed, ToolMissing

    try:
        if part == _WATCH:
            watched = vs_rocketmq_watched.measure_watched(rounds, say)
            return _print(watched, json_file, vs_rocketmq_watched.ABOUT)
        rocketmq, about = ROCKETMQ, vs_rocketmq.ABOUT
        if part == _TIMERS:
            rocketmq, about = ROCKETMQ_5, vs_rocketmq_timers.ABOUT
            rows = vs_rocketmq_timers.compare_timers(rounds, scale, say)
        elif part == _POP:
            rocketmq, about = ROCKETMQ_5, vs_rocketmq_pop.ABOUT
            rows = vs_rocketmq_pop.compare_pop(rounds, scale, say)
        else:
            rows = vs_rocketmq.compare(rounds, scale, say) if part != _NAMESRV else []
            if part != _BROKER:
                rows += vs_namesrv.compare_lookups(rounds, scale, say)
    except (StartError, LoadError, TimerLoadError, PopLoadError, ToolMissing, BuildFailed) as error:
        say(f"scripts/bench: {error}")
        return 2
    print(render_comparisons(rows, rocketmq, REWINDMQ))
    print(about)
    print(describe_python())
    if json_file is not None:
        write_json(rows, json_file)
    return 1 if any(row.reached is False for row in rows) else 0


def _names(text: str) -> list[str]:
    """Return the loads that a comma-separated list names."""
    names = text.split(",")
    known = [*LOADS, *FULL_LOADS]
    for name in names:
        if name not in known:
            raise argparse.ArgumentTypeError(f"no load {name!r}: choose from {', '.join(known)}")
    return names


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/bench",
        description="Measures RewindMQ and prints one table of medians.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each load (default 5)")
    parser.add_argument(
        "--only",
        type=_names,
        action="extend",
        metavar="LOAD[,LOAD...]",
        help=f"run only these loads: {', '.join([*LOADS, *FULL_LOADS])}",
    )
    parser.add_argument(
        "--full",
        action="store_true",
        help=f"also run {', '.join(FULL_LOADS)}: many minutes",
    )
    parser.add_argument(
        "--vs-rocketmq",
        nargs="?",
        const=_BOTH,
        choices=[_BOTH, _BROKER, _NAMESRV, _WATCH, _TIMERS, _POP],
        metavar="PART",
        help="run only the comparison with RocketMQ: broker (under the official Java client, six minutes),"
        " namesrv (route look-ups, four minutes) or both (default); or watch: how many kept resets a watcher"
        " proves at RocketMQ (quarter of an hour); or timers (quarter of an hour) or pop (five minutes):"
        " at RocketMQ 5; needs Java and Maven",
    )
    parser.add_argument("--scale", type=float, default=1.0, help="factor on the amount of work (default 1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows as JSON")
    arguments = parser.parse_args()
    if arguments.rounds < 1 or not 0.01 <= arguments.scale <= 10:
        parser.error("--rounds must be at least 1, --scale between 0.01 and 10")
    # Let SIGTERM unwind the stack, so that the clusters started here stop, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if arguments.vs_rocketmq:
        if arguments.only or arguments.full:
            parser.error("--vs-rocketmq runs alone, without --only and --full")
        return _compare(arguments.vs_rocketmq, arguments.rounds, arguments.scale, arguments.json)
    rows: list[Row] = []
    loads = {**LOADS, **FULL_LOADS}
    names = arguments.only or list(LOADS)
    for name in dict.fromkeys([*names, *(FULL_LOADS if arguments.full else ())]):
        rows += loads[name](arguments.rounds, arguments.scale)
    return _print(rows, arguments.json)


def _print(rows: list[Row], json_file: Path | None, *about: str) -> int:
    """Print the table and what it is about; return the exit code."""
    print(render(rows))
    for line in (*about, describe_python()):
        print(line)
    if json_file is not None:
        write_json(rows, json_file)
    return 1 if any(row.reached is False for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
