"""``rewindmq pipeline compact``: writes the latest message of every key to a new output."""

from __future__ import annotations

import argparse
from typing import Final

from rewindmq.pipeline.commands.checks import look_at_output, look_at_stores
from rewindmq.pipeline.commands.common import add_common_arguments, byte_count, working
from rewindmq.pipeline.commands.summary import command, show_summary

EPILOG: Final = """\
Formats: compaction writes what RocketMQ 5 keeps of a topic with cleanup.policy=COMPACTION and keeps queue
offsets. store writes a new store, renumbers its queues, and translates the offsets of consumer groups.
A run on an earlier run's output continues from there, and resumes that run if it was interrupted.

examples:
  rewindmq pipeline compact ~/store ~/compacted --topic Prices
  rewindmq pipeline compact ~/store ~/fresh --format store --tombstone-grace 24h
  rewindmq pipeline compact ~/broker-a ~/broker-b ~/one --format store --scope topic
  rewindmq pipeline verify ~/store ~/compacted
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("stores", nargs="+", metavar="STORE", help="a store; several stores make one output")
    parser.add_argument("out", metavar="OUT", help="output directory: new, empty, or of an earlier run")
    parser.add_argument(
        "--format",
        choices=("compaction", "store"),
        default="compaction",
        help="format of the output (default: compaction)",
    )
    parser.add_argument(
        "--topic",
        action="append",
        default=[],
        metavar="T",
        help="compact this topic; may be repeated (default: topics with cleanup.policy=COMPACTION, else all)",
    )
    parser.add_argument(
        "--tombstone-grace",
        default="0",
        metavar="DURATION",
        help="keep a tombstone (a key's latest message, without a body) until this old: 24h, 7d (default: 0)",
    )
    parser.add_argument(
        "--keyless",
        choices=("keep", "drop"),
        default="keep",
        help="what to do with messages without a key (default: keep; format compaction always drops them)",
    )
    parser.add_argument(
        "--scope",
        choices=("queue", "topic"),
        default="queue",
        help="keep the latest message per key and queue, or per key and topic (default: queue)",
    )
    parser.add_argument(
        "--segment-bytes",
        type=byte_count,
        metavar="N",
        help="size of a commit log segment, for --format store (default: as in STORE)",
    )
    add_common_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Compact, and print the summary.

    Raises:
        PipelineError: there is no store, a topic is unknown, or the output holds something else.
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
    with working(arguments, snapshots) as (runner, display):
        summary = compact(runner, arguments.stores, arguments.out, options, progress=display.begin)
    next_steps = [command("verify", store, arguments.out) for store in arguments.stores]
    show_summary(summary.to_json(), is_json=arguments.json, next_steps=next_steps)
    return 0
