"""``rewindmq pipeline verify``: whether a store is what it should be, and a job's output what it claims."""

from __future__ import annotations

import argparse
import json
from typing import Final

from rewindmq.pipeline.commands.checks import look_at_stores
from rewindmq.pipeline.commands.common import add_common_arguments, running

EPILOG: Final = """\
With OUT, what 'compact' or 'index' wrote there is held against the store it was made from, message by
message.

examples:
  rewindmq pipeline verify ~/store
  rewindmq pipeline verify ~/store ~/compacted
  rewindmq pipeline verify ~/store ~/indexed --json

exit codes: 0 nothing is wrong, 1 something is, or an error
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("store", metavar="STORE", help="the store to be checked")
    parser.add_argument("out", nargs="?", metavar="OUT", help="what a job made of it")
    add_common_arguments(parser, json_help="print the report as one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Check, and tell what was found; returns 1 when something is wrong.

    Raises:
        PipelineError: no store, or no output made from it.
    """
    (snapshot,) = look_at_stores([arguments.store])
    from rewindmq.pipeline.verify.job import verify
    from rewindmq.pipeline.verify.outputs import open_output
    from rewindmq.pipeline.verify.report import render_text

    if arguments.out is not None:
        open_output(snapshot, arguments.out)
    with running(arguments) as (spark, display):
        report = verify(spark, arguments.store, arguments.out, progress=display.begin)
    if arguments.json:
        print(json.dumps(report.to_json(), indent=2, ensure_ascii=False))
    else:
        print(render_text(report), end="")
    return 0 if report.is_intact else 1
