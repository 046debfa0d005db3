"""``rewindmq pipeline index``: builds consume queues, key index and a Parquet copy from the log."""

from __future__ import annotations

import argparse
from typing import Final

from rewindmq.pipeline.commands.checks import look_at_output, look_at_stores
from rewindmq.pipeline.commands.common import (
    add_common_arguments,
    byte_count,
    positive_int,
    working,
)
from rewindmq.pipeline.commands.summary import command, show_summary

EPILOG: Final = """\
OUT/current then holds consumequeue/, timeindex/ and index/ in the broker's formats, and messages/ as Parquet.
A run on an earlier run's output reads only the new part of the log. 'rewindmq pipeline install OUT STORE'
copies the files into the store of a stopped broker. Give the sizes that the broker is configured with.

examples:
  rewindmq pipeline index ~/store ~/indexed
  rewindmq pipeline index ~/store ~/indexed --max-hash-slot-num 500000 --max-index-num 2000000
  rewindmq pipeline show ~/store --topic Orders --key order-4711 --index ~/indexed
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("store", metavar="STORE", help="the store to index")
    parser.add_argument("out", metavar="OUT", help="output directory: new, empty, or of an earlier run")
    parser.add_argument(
        "--max-hash-slot-num",
        type=positive_int,
        metavar="N",
        help="slots of an index file: the broker's maxHashSlotNum (default: 5000000)",
    )
    parser.add_argument(
        "--max-index-num",
        type=positive_int,
        metavar="N",
        help="entries of an index file: the broker's maxIndexNum (default: 20000000)",
    )
    parser.add_argument(
        "--queue-file-bytes",
        type=byte_count,
        metavar="N",
        help="the broker's mappedFileSizeConsumeQueue (default: as in STORE)",
    )
    parser.add_argument(
        "--delay-levels", metavar="TEXT", help="the broker's messageDelayLevel (default: RocketMQ's)"
    )
    add_common_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Index, and print the summary.

    Raises:
        PipelineError: there is no store, a setting is invalid, or the output holds something else.
    """
    snapshots = look_at_stores([arguments.store])
    look_at_output(arguments.out, "index", snapshots)
    from rewindmq.pipeline.index.job import build_index
    from rewindmq.pipeline.index.options import IndexOptions

    given = {
        "max_hash_slot_num": arguments.max_hash_slot_num,
        "max_index_num": arguments.max_index_num,
        "consume_queue_file_bytes": arguments.queue_file_bytes,
        "message_delay_level": arguments.delay_levels,
    }
    options = IndexOptions(**{name: value for name, value in given.items() if value is not None})
    options.check()
    with working(arguments, snapshots) as (runner, display):
        summary = build_index(runner, arguments.store, arguments.out, options, progress=display.begin)
    install = f"stop the broker, then {command('install', arguments.out, arguments.store)}"
    next_steps = [command("verify", arguments.store, arguments.out), install]
    show_summary(summary.to_json(), is_json=arguments.json, next_steps=next_steps)
    return 0
