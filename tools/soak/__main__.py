"""Command line of the soak: ``scripts/soak`` runs ``python -m tools.soak``."""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Final

from rewindmq.cluster.signals import stop_signals
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.profile import RELEASES, Profile
from rewindmq.protocol.remoting.process.options import positive_factor
from tools.soak.driver import Soak
from tools.soak.options import FEATURES, SoakOptions
from tools.soak.report import SoakReport

_EXIT_INTERRUPTED: Final = 130
_EPILOG: Final = """\
examples:
  scripts/soak                                  the standard run of 30 minutes
  scripts/soak --minutes 2 --seed 7             a short run with the schedule of seed 7
  scripts/soak --minutes 5 --keep /tmp/soak     keep stores, logs and journals
  scripts/soak --minutes 2 --without resets,kills

exit codes: 0 all promises kept, 1 a promise was broken (the report names it) or the soak could not go on,
2 wrong usage, 130 interrupted
"""


def main() -> int:
    options = _parse()
    # 4.2.0 has no transactions.
    without = options.without | ({"transactions"} if options.profile is Profile.V42 else set())
    with nullcontext(options.keep) if options.keep else tempfile.TemporaryDirectory(prefix="soak-") as place:
        directory = Path(place)
        if directory.exists() and any(directory.iterdir()):
            print(f"soak: {directory} is not empty", file=sys.stderr)
            return 2
        soak = SoakOptions(
            options.minutes,
            options.seed,
            options.time_scale,
            options.rate,
            options.profile,
            directory.absolute(),
            without,
        )
        try:
            report = asyncio.run(_run_until_stopped(soak))
        except (RewindMQError, OSError) as error:
            print(f"soak: {error}", file=sys.stderr)
            return 1
    if report is None:
        return _EXIT_INTERRUPTED
    print("\n".join(report.lines()))
    return 0 if report.verdict.is_ok else 1


async def _run_until_stopped(options: SoakOptions) -> SoakReport | None:
    def progress(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    progress(f"seed {options.seed}, {options.minutes:g} min")
    running = asyncio.create_task(Soak(options, progress).run())
    loop = asyncio.get_running_loop()
    for number in stop_signals():
        loop.add_signal_handler(number, running.cancel)
    await asyncio.wait((running,))
    return None if running.cancelled() else running.result()


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/soak",
        description="Runs a cluster under load, kills its processes, resets its groups, and accounts for"
        " every message.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--minutes",
        type=positive_factor,
        default=30.0,
        help="how long producers send (default: 30)",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=random.randrange(10_000),
        help="seed of the schedule of kills and resets",
    )
    parser.add_argument(
        "--time-scale",
        type=positive_factor,
        default=0.1,
        metavar="X",
        help="factor for every wait (default: 0.1)",
    )
    parser.add_argument(
        "--rate", type=positive_factor, default=200.0, metavar="N", help="messages a second (default: 200)"
    )
    parser.add_argument(
        "--profile",
        type=Profile,
        choices=RELEASES,
        default=Profile.V49,
        help="the release to behave as (default: v49)",
    )
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep all files in this empty directory")
    parser.add_argument(
        "--without",
        type=_features,
        default=frozenset(),
        metavar="FEATURE,...",
        help=f"leave out some of {', '.join(FEATURES)}",
    )
    return parser.parse_args()


def _features(text: str) -> frozenset[str]:
    features = frozenset(filter(None, text.split(",")))
    if unknown := features - set(FEATURES):
        raise argparse.ArgumentTypeError(
            f"unknown feature {', '.join(sorted(unknown))}; known: {', '.join(FEATURES)}"
        )
    return features


if __name__ == "__main__":
    sys.exit(main())
