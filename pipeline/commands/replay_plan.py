"""``rewindmq pipeline replay-plan``: shows what a reset would redeliver, without resetting."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path
from typing import Final

from rewindmq.pipeline.commands.checks import look_at_stores, require_writable
from rewindmq.pipeline.commands.common import add_common_arguments, working
from rewindmq.protocol.text import escape_json

EPILOG: Final = """\
Give the stores of all brokers that have the topic. TARGET is a time (milliseconds since 1970,
yyyy-MM-dd#HH:mm:ss:SSS as mqadmin takes it, or ISO 8601), offset:N, or -1 for the end of every queue.
RocketMQ's releases search by time in two ways; where the results differ, the plan shows both.

examples:
  rewindmq pipeline replay-plan ~/store --group G --topic T --to 2026-03-01T12:00:00
  rewindmq pipeline replay-plan ~/broker-a ~/broker-b --group G --topic T --to offset:0 --json
  rewindmq pipeline replay-plan ~/store --group G --topic T --to 1772366400000 --html plan.html
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("stores", nargs="+", metavar="STORE", help="a store; give the stores of all brokers")
    parser.add_argument("-g", "--group", required=True, metavar="G", help="the consumer group to reset")
    parser.add_argument("-t", "--topic", required=True, metavar="T", help="the topic to reset")
    parser.add_argument("--to", required=True, metavar="TARGET", help="reset target: a time, offset:N, or -1")
    parser.add_argument("--html", type=Path, metavar="FILE", help="also write the plan as one HTML page")
    add_common_arguments(parser, json_help="print the plan as one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Plan, and print the plan.

    Raises:
        PipelineError: there is no store, group or topic is unknown, the target is invalid, or the page cannot
            be written.
    """
    if arguments.html is not None:
        require_writable(arguments.html)
    snapshots = look_at_stores(arguments.stores)
    from rewindmq.pipeline.replay.job import carry_out, prepare

    prepared = prepare(arguments.stores, group=arguments.group, topic=arguments.topic, to=arguments.to)
    with working(arguments, snapshots) as (runner, display):
        plan = carry_out(runner, prepared, progress=display.begin)
    if arguments.html is not None:
        from rewindmq.pipeline.replay.page import render_html

        arguments.html.write_text(render_html(plan), "utf-8")
    if arguments.json:
        print(escape_json(json.dumps(plan.to_json(), indent=2, ensure_ascii=False)))
    else:
        from rewindmq.pipeline.replay.text import render_text

        encoding = (sys.stdout.encoding or "ascii").lower()
        print(render_text(plan, is_plain="utf" not in encoding), end="")
        if arguments.html is not None:
            print(f"page: {arguments.html}")
        if plan.timestamp is not None:
            reset = ["resetOffsetByTime", "-g", plan.group, "-t", plan.topic, "-s", str(plan.timestamp)]
            print(f"\nto reset: {shlex.join(['rewindmq', 'admin', *reset])}")
    return 0
