"""``rewindmq pipeline``: reads a broker's store offline, in this process or with Spark."""

from __future__ import annotations

import argparse
import importlib
from types import MappingProxyType
from typing import Final, NamedTuple


class _SubCommand(NamedTuple):
    module: str
    help: str


SUB_COMMANDS: Final = MappingProxyType(
    {
        "show": _SubCommand("rewindmq.pipeline.commands.show", "print the rows of a store"),
        "compact": _SubCommand(
            "rewindmq.pipeline.commands.compact",
            "write the latest message of every key to a new output",
        ),
        "index": _SubCommand("rewindmq.pipeline.commands.index", "build queues, key and time indexes"),
        "install": _SubCommand(
            "rewindmq.pipeline.commands.install", "copy the output of index into a stopped broker's store"
        ),
        "replay-plan": _SubCommand(
            "rewindmq.pipeline.commands.replay_plan", "show what a reset of a group would redeliver"
        ),
        "verify": _SubCommand(
            "rewindmq.pipeline.commands.verify", "check a store, and the output of compact or index"
        ),
    }
)

EPILOG: Final = """\
STORE is a broker's storePathRootDir, written by RewindMQ or RocketMQ. The commands read it, also while the
broker runs; only install writes to it. Give local paths or URIs: hdfs:, s3a:, gs:, abfs:.
Needs the extra rewindmq[pipeline] and, for stores with more than 64 MiB of commit log, Java 17 or newer.

examples:
  rewindmq pipeline show ~/store --limit 10
  rewindmq pipeline compact ~/store ~/compacted
  rewindmq pipeline index ~/store ~/indexed
  rewindmq pipeline replay-plan ~/store --group G --topic T --to 2026-03-01T12:00:00
  rewindmq pipeline verify ~/store
  rewindmq pipeline COMMAND --help
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the sub-commands."""
    commands = parser.add_subparsers(dest="pipeline_command", metavar="COMMAND", required=True)
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
        sub_parser.set_defaults(_pipeline_run=module.run)


def run(arguments: argparse.Namespace) -> int:
    """Run a sub-command and return its exit code."""
    code: int = arguments._pipeline_run(arguments)
    return code
