"""``rewindmq pipeline install``: gives a stopped broker's store what ``index`` made of its log."""

from __future__ import annotations

import argparse
from typing import Final

from rewindmq.pipeline.commands.summary import show_summary

EPILOG: Final = """\
Consume queues, key index and time index of the store are replaced; its log stays as it is. Stop the broker
before: a store in use is refused. Needs no Spark.

examples:
  rewindmq pipeline index ~/store ~/indexed
  rewindmq pipeline install ~/indexed ~/store
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("out", metavar="OUT", help="what 'rewindmq pipeline index' wrote")
    parser.add_argument("store", metavar="STORE", help="the store it was made from, or a copy of that")
    parser.add_argument("--json", action="store_true", help="print the summary as one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Install, and tell what was copied.

    Raises:
        PipelineError: no index, made from another log, or a broker runs on the store.
    """
    from rewindmq.pipeline.spark.session import require_spark

    require_spark()
    from rewindmq.pipeline.index.install import install_index

    summary = install_index(arguments.out, arguments.store)
    next_steps = ["start the broker: it goes on from there, and makes nothing of this anew"]
    show_summary(summary.to_json(), is_json=arguments.json, next_steps=next_steps)
    return 0
