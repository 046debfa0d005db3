"""``rewindmq race``: play a race that loses a reset, see why, and check the remedies."""

from __future__ import annotations

import argparse
import importlib
import io
import sys
from types import MappingProxyType
from typing import Final, NamedTuple


class _SubCommand(NamedTuple):
    module: str
    help: str


SUB_COMMANDS: Final = MappingProxyType(
    {
        "list": _SubCommand("rewindmq.race.commands.list_races", "the catalogue of races"),
        "run": _SubCommand("rewindmq.race.commands.run_race", "play one race and judge its outcome"),
        "explore": _SubCommand(
            "rewindmq.race.commands.explore", "search the interleavings of a model for a broken law"
        ),
        "replay": _SubCommand("rewindmq.race.commands.replay", "run a schedule file again, step for step"),
        "proxy": _SubCommand(
            "rewindmq.race.commands.proxy", "hold and release frames between a client and a cluster by hand"
        ),
    }
)

EPILOG: Final = """\
examples:
  rewindmq race list
  rewindmq race run R1
  rewindmq race run R1 --held --report r1.html
  rewindmq race explore one-reset --exhaustive --mode fenced
  rewindmq race COMMAND --help
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the sub-commands."""
    commands = parser.add_subparsers(dest="race_command", metavar="COMMAND", required=True)
    for name, command in SUB_COMMANDS.items():
        module = importlib.import_module(command.module)
        text = command.help
        sub_parser = commands.add_parser(
            name,
            help=text,
            description=f"{text[0].upper()}{text[1:]}.",
            epilog=module.EPILOG,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(sub_parser)
        sub_parser.set_defaults(_race_run=module.run)


def run(arguments: argparse.Namespace) -> int:
    """Run a sub-command; returns its exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal without box-drawing characters gets replacements instead of an error.
        sys.stdout.reconfigure(errors="replace")
    code: int = arguments._race_run(arguments)
    return code
