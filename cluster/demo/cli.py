"""``rewindmq demo``: an experiment with three resets and a replay, each verified.

Exit codes: 0 every figure was verified, 1 a figure is wrong or the experiment failed, 130 interrupted.
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

exit codes: 0 every figure verified, 1 a figure is wrong or the experiment failed, 130 interrupted
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
        help=f"messages that the producer sends, {_MIN_MESSAGES} to {_MAX_MESSAGES} (default: 10000)",
    )
    parser.add_argument(
        "--time-scale",
        type=positive_factor,
        default=1.0,
        metavar="X",
        help="factor on every scheduled wait: 0.05 turns 10 s into 0.5 s (default: 1)",
    )
    parser.add_argument(
        "--profile",
        type=Profile,
        choices=RELEASES,
        default=Profile.V49,
        help="release to imitate (default: v49)",
    )
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep stores, configurations and logs here")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the whole result here as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Run the experiment and return the exit code.

    Raises:
        RewindMQError: the experiment failed before its end.
        OSError: the report or the directory cannot be written.
    """
    import asyncio

    from rewindmq.cluster.demo.display import result_lines
    from rewindmq.cluster.demo.main import run_until_stopped
    from rewindmq.cluster.demo.stage import DemoOptions
    from rewindmq.protocol.errors import ConfigError
    from rewindmq.protocol.text import escape_lines

    directory = arguments.keep
    if directory is not None and directory.is_dir() and any(directory.iterdir()):
        raise ConfigError(f"{directory} is not empty; the experiment needs an empty directory")
    if arguments.report is not None:
        # A file that cannot be written fails now, not after the experiment.
        arguments.report.touch()
    options = DemoOptions(arguments.messages, arguments.time_scale, arguments.profile, directory)
    report = asyncio.run(run_until_stopped(options))
    if report is None:
        return _EXIT_INTERRUPTED
    print(escape_lines(result_lines(report)), flush=True)
    if arguments.report is not None:
        arguments.report.write_text(json.dumps(report.to_json(), indent=2) + "\n")
    return 0 if report.is_ok else 1


def _message_count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and _MIN_MESSAGES <= int(text) <= _MAX_MESSAGES):
        raise argparse.ArgumentTypeError(f"must be {_MIN_MESSAGES} to {_MAX_MESSAGES}, not {text!r}")
    return int(text)
