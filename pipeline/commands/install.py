"""``rewindmq pipeline install``: copies the output of ``index`` into a stopped broker's store."""

from __future__ import annotations

import argparse
from typing import Final

from rewindmq.pipeline.commands.summary import show_summary

EPILOG: Final = """\
The command replaces the store's consume queues, key index and time index; the log stays unchanged. Stop the
broker first: the command refuses a store in use. It starts no Spark and needs no Java.

examples:
  rewindmq pipeline index ~/store ~/indexed
  rewindmq pipeline install ~/indexed ~/store
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("out", metavar="OUT", help="the output of 'rewindmq pipeline index'")
    parser.add_argument("store", metavar="STORE", help="the store that OUT was made from, or a copy of it")
    parser.add_argument("--json", action="store_true", help="print the summary as one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Install, and print the summary.

    Raises:
        PipelineError: OUT is not an index, it was made from another log, or a broker uses the store.
    """
    from rewindmq.pipeline.spark.session import require_spark

    require_spark()
    from rewindmq.pipeline.index.install import install_index

    summary = install_index(arguments.out, arguments.store)
    next_steps = ["start the broker: it continues from these files"]
    show_summary(summary.to_json(), is_json=arguments.json, next_steps=next_steps)
    return 0
