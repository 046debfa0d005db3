"""``rewindmq pipeline compact``: of every key the latest message, in an output of its own."""

from __future__ import annotations

import argparse
from typing import Final

from rewindmq.pipeline.commands.checks import look_at_output, look_at_stores
from rewindmq.pipeline.commands.common import add_common_arguments, byte_count, running
from rewindmq.pipeline.commands.summary import command, show_summary

EPILOG: Final = """\
Formats: compaction, what RocketMQ 5 keeps of a topic with cleanup.policy=COMPACTION, queue offsets as they
were; store, a fresh store, its queues numbered anew, with the positions of consumer groups translated. A run
on an output of an earlier one goes on where that ended, and an interrupted one is taken up again.

examples:
  rewindmq pipeline compact ~/store ~/compacted --topic Prices
  rewindmq pipeline compact ~/store ~/fresh --format store --tombstone-grace 24h
  rewindmq pipeline compact ~/broker-a ~/broker-b ~/one --format store --scope topic
  rewindmq pipeline verify ~/store ~/compacted
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("stores", nargs="+", metavar="STORE", help="a store; several become one output")
    parser.add_argument("out", metavar="OUT", help="where to: new, empty, or of an earlier run")
    parser.add_argument(
        "--format",
        choices=("compaction", "store"),
        default="compaction",
        help="what is written (default: compaction)",
    )
    parser.add_argument(
        "--topic",
        action="append",
        default=[],
        metavar="T",
        help="compact this one; may be repeated (default: those with cleanup.policy=COMPACTION, else all)",
    )
    parser.add_argument(
        "--tombstone-grace",
        default="0",
        metavar="DURATION",
        help="keep a latest message without a body so long, as in 24h, 7d (default: 0)",
    )
    parser.add_argument(
        "--keyless",
        choices=("keep", "drop"),
        default="keep",
        help="messages without a key; the compaction format drops them (default: keep)",
    )
    parser.add_argument(
        "--scope",
        choices=("queue", "topic"),
        default="queue",
        help="where a key has one latest message (default: queue)",
    )
    parser.add_argument(
        "--segment-bytes",
        type=byte_count,
        metavar="N",
        help="size of a commit log segment with format store (default: as in STORE)",
    )
    add_common_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Compact, and tell what was kept.

    Raises:
        PipelineError: no store, an unknown topic, an output that is something else.
    """
    snapshots = look_at_stores(arguments.stores)
    look_at_output(arguments.out, "compact", snapshots)
    from rewindmq.pipeline.compact.job import compact, prepare
    from rewindmq.pipeline.compact.options import CompactOptions, Format, Keyless, Scope
    from rewindmq.pipeline.moment import parse_duration

    options = CompactOptions(
        format=Format(arguments.format),
        scope=Scope(arguments.scope),
        topics=tuple(arguments.topic),
        tombstone_grace_ms=parse_duration(arguments.tombstone_grace),
        keyless=Keyless(arguments.keyless),
        segment_bytes=arguments.segment_bytes,
    )
    prepare(arguments.stores, arguments.out, options)
    with running(arguments) as (spark, display):
        summary = compact(spark, arguments.stores, arguments.out, options, progress=display.begin)
    next_steps = [command("verify", store, arguments.out) for store in arguments.stores]
    show_summary(summary.to_json(), is_json=arguments.json, next_steps=next_steps)
    return 0
