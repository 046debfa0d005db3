"""``rewindmq pipeline verify``: checks a store, and a job's output against the store."""

from __future__ import annotations

import argparse
import json
from typing import Final

from rewindmq.pipeline.commands.checks import look_at_stores
from rewindmq.pipeline.commands.common import add_common_arguments, working
from rewindmq.protocol.text import escape_json

EPILOG: Final = """\
With OUT, the command also compares the output of 'compact' or 'index' with the store, message by message.

examples:
  rewindmq pipeline verify ~/store
  rewindmq pipeline verify ~/store ~/compacted
  rewindmq pipeline verify ~/store ~/indexed --json

exit codes: 0 no errors found; 1 errors found, or the command failed
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("store", metavar="STORE", help="the store to check")
    parser.add_argument("out", nargs="?", metavar="OUT", help="output of compact or index, made from STORE")
    add_common_arguments(parser, json_help="print the report as one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Check, and print the findings; return 1 if there are errors.

    Raises:
        PipelineError: there is no store, or OUT was not made from it.
    """
    (snapshot,) = look_at_stores([arguments.store])
    from rewindmq.pipeline.verify.job import verify
    from rewindmq.pipeline.verify.outputs import open_output
    from rewindmq.pipeline.verify.report import render_text

    if arguments.out is not None:
        open_output(snapshot, arguments.out)
    with working(arguments, [snapshot]) as (runner, display):
        report = verify(runner, arguments.store, arguments.out, progress=display.begin)
    if arguments.json:
        print(escape_json(json.dumps(report.to_json(), indent=2, ensure_ascii=False)))
    else:
        print(render_text(report), end="")
    return 0 if report.is_intact else 1
