"""``rewindmq demo``: the experiment, from the command line.

Exit codes: 0 every figure was verified, 1 one is wrong or the experiment could not go on, 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Final

from rewindmq.protocol.profile import RELEASES, Profile
from rewindmq.protocol.remoting.process.options import positive_factor

EPILOG: Final = """\
example:
  rewindmq demo --time-scale 0.05

exit codes: 0 every figure verified, 1 a figure is wrong (it is named), 130 interrupted
"""
_MIN_MESSAGES: Final = 100
_MAX_MESSAGES: Final = 1_000_000
_EXIT_INTERRUPTED: Final = 130


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options that ``run`` reads."""
    parser.add_argument(
        "--messages",
        type=_message_count,
        default=10_000,
        metavar="N",
        help=f"how many the producer sends, {_MIN_MESSAGES} to {_MAX_MESSAGES} (default: 10000)",
    )
    parser.add_argument(
        "--time-scale",
        type=positive_factor,
        default=1.0,
        metavar="X",
        help="shorten every wait together: 0.05 turns 10 s into 0.5 s (default: 1)",
    )
    parser.add_argument(
        "--profile",
        type=Profile,
        choices=RELEASES,
        default=Profile.V49,
        help="the RocketMQ release to act like (default: v49)",
    )
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep stores, configurations and logs there")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the whole result there as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Carry the experiment out; returns the exit code.

    Raises:
        RewindMQError: it could not go on.
        OSError: the report or the directory cannot be written.
    """
    import asyncio

    from rewindmq.cluster.demo.display import result_lines
    from rewindmq.cluster.demo.main import run_until_stopped
    from rewindmq.cluster.demo.stage import DemoOptions
    from rewindmq.protocol.errors import ConfigError

    directory = arguments.keep
    if directory is not None and directory.is_dir() and any(directory.iterdir()):
        raise ConfigError(f"{directory} is not empty; the experiment needs a fresh directory")
    if arguments.report is not None:
        # Found out now rather than when all is done.
        arguments.report.touch()
    options = DemoOptions(arguments.messages, arguments.time_scale, arguments.profile, directory)
    report = asyncio.run(run_until_stopped(options))
    if report is None:
        return _EXIT_INTERRUPTED
    print("\n".join(result_lines(report)), flush=True)
    if arguments.report is not None:
        arguments.report.write_text(json.dumps(report.to_json(), indent=2) + "\n")
    return 0 if report.is_ok else 1


def _message_count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and _MIN_MESSAGES <= int(text) <= _MAX_MESSAGES):
        raise argparse.ArgumentTypeError(f"must be {_MIN_MESSAGES} to {_MAX_MESSAGES}, not {text!r}")
    return int(text)
