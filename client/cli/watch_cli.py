"""``rewindmq watch``: records a group while a tool resets it, and judges the reset afterwards.

Exit codes of ``judge``: 0 every queue is proven, 1 failed, 2 wrong options, 3 a queue is lost, 4 unknown.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from rewindmq.client.admin.commands.reset_target import offset_of_queue
from rewindmq.client.cli.admin_work import run_with_admin
from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.remoting.process.options import positive_factor

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient
    from rewindmq.protocol.remoting.runtime import Runtime
    from rewindmq.watch.record.judging import FoundReset
    from rewindmq.watch.record.recording import Recording
    from rewindmq.watch.verdict.reset_watch import ResetWatch

EPILOG: Final = """\
examples:
  rewindmq watch record -t TopicTest -g my_group reset.jsonl        until Ctrl-C; reset the group meanwhile
  rewindmq watch record -t TopicTest -g my_group --for 180 reset.jsonl
  rewindmq watch judge reset.jsonl
  rewindmq watch judge reset.jsonl --at 12 --to-offset broker-a:0=0

exit codes of judge: 0 proven, 1 failed, 2 wrong options, 3 lost, 4 unknown
"""

# Protocol seconds.
_TOLD_EVERY: Final = 10.0
_DEFAULT_SECONDS: Final = 600.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define ``record`` and ``judge``."""
    commands = parser.add_subparsers(dest="watch_command", metavar="COMMAND", required=True)
    record = commands.add_parser("record", help="write samples of a group to a file, until Ctrl-C")
    record.add_argument("file", metavar="FILE", type=Path, help="the file to make")
    record.add_argument("-t", "--topic", required=True, help="the topic")
    record.add_argument("-g", "--group", required=True, help="the consumer group")
    record.add_argument(
        "-n", "--namesrv", metavar="ADDR", help="host:port[;host:port] (default: NAMESRV_ADDR)"
    )
    record.add_argument(
        "--for",
        dest="seconds",
        type=positive_factor,
        default=_DEFAULT_SECONDS,
        metavar="SECONDS",
        help=f"end after this time (default: {_DEFAULT_SECONDS:g}); record for 120 s after the reset",
    )
    judge = commands.add_parser("judge", help="say what became of the reset in a recorded file")
    judge.add_argument("file", metavar="FILE", type=Path, help="what rewindmq watch record has written")
    judge.add_argument(
        "--at",
        type=positive_factor,
        metavar="SECONDS",
        help="when the reset was, since the recording's begin; needs --to-offset (default: found in FILE)",
    )
    judge.add_argument(
        "--to-offset",
        type=offset_of_queue,
        action="append",
        metavar="BROKER:QUEUE=OFFSET",
        help="where the reset moved a queue, as its command printed it; repeat it for each queue; needs --at",
    )
    judge.add_argument("--json", action="store_true", help="print one JSON object with the verdict")


def run(arguments: argparse.Namespace) -> int:
    """Record or judge, and return the exit code."""
    if arguments.watch_command == "judge":
        return _judge(arguments)
    with _new_file(arguments.file) as file:
        run_with_admin(arguments.namesrv, partial(_record, arguments=arguments, file=file))
    # Ctrl-C is how a recording ends.
    return 0


@contextlib.contextmanager
def _new_file(path: Path) -> Iterator[BinaryIO]:
    """Make a file, before anything is asked; remove it again if nothing was written to it."""
    try:
        file = path.open("xb")
    except FileExistsError:
        raise ClientError(f"{path} exists already: name another file") from None
    except OSError as error:
        raise ClientError(f"{path} cannot be written: {error.strerror}") from None
    with file:
        try:
            yield file
        finally:
            if file.tell() == 0:
                path.unlink(missing_ok=True)


async def _record(
    admin: AdminClient, runtime: Runtime, arguments: argparse.Namespace, file: BinaryIO
) -> None:
    from rewindmq.client.admin.watched_reset.brokers import Brokers
    from rewindmq.client.admin.watched_reset.follow import INTERVAL
    from rewindmq.client.admin.watched_reset.take_sample import take_sample
    from rewindmq.watch.evidence.sample import silent_brokers
    from rewindmq.watch.record.recording import Heading, heading_line, sample_line

    topic, group = arguments.topic, arguments.group
    brokers = Brokers(admin)
    queues = (await brokers.routes.shape_of(topic)).queues
    file.write(heading_line(Heading(topic, group, runtime.clock.now_ms())))
    began, told, count = runtime.clock.monotonic(), -_TOLD_EVERY, 0
    print(f"recording group[{group}], topic[{topic}], queues: {len(queues)}; reset it now, Ctrl-C ends")
    while True:
        sample = await take_sample(admin, topic, group, queues, brokers)
        seconds, count = runtime.clock.monotonic() - began, count + 1
        line = sample_line(sample)
        await runtime.workers.run(partial(_write, file, line))
        if seconds - told >= _TOLD_EVERY:
            told = seconds
            stored = sum(seen.stored or 0 for seen in sample.queues.values())
            silent = ", ".join(silent_brokers(sample))
            suffix = f"; no answer from {silent}" if silent else ""
            print(
                f"{seconds:6.1f} s  samples {count}, consumers {len(sample.clients)}, stored {stored}{suffix}"
            )
            sys.stdout.flush()
        if seconds >= arguments.seconds:
            return
        await runtime.timers.sleep(INTERVAL)


def _write(file: BinaryIO, line: bytes) -> None:
    file.write(line)
    file.flush()


def _judge(arguments: argparse.Namespace) -> int:
    from rewindmq.client.admin.commands.reset_watch import change_text
    from rewindmq.watch.record.judging import judge
    from rewindmq.watch.record.recording import read_recording
    from rewindmq.watch.verdict.reset_watch import Change

    recording = read_recording(_read(arguments.file))
    reset = _reset_of(recording, arguments)
    began = recording.samples[reset.index].at - recording.samples[0].at
    heading = recording.heading
    if not arguments.json:
        print(
            f"group[{heading.group}], topic[{heading.topic}]: reset {began:.1f} s after the begin of the"
            f" recording, queues: {len(reset.targets)}"
        )
    for item in judge(recording, reset):
        if not isinstance(item, Change):
            return _verdict(recording, began, item, is_json=arguments.json)
        if not arguments.json:
            print(change_text(item))
    raise AssertionError("judge() ends with the watch")


def _reset_of(recording: Recording, arguments: argparse.Namespace) -> FoundReset:
    from rewindmq.client.admin.target_offsets import unique_offsets
    from rewindmq.protocol.message_queue import MessageQueue
    from rewindmq.watch.record.judging import find_reset, reset_at

    if (arguments.at is None) != (arguments.to_offset is None):
        raise ClientError("--at and --to-offset name the reset together: give both, or none")
    if arguments.at is None:
        return find_reset(recording.samples)
    targets = unique_offsets(
        (MessageQueue(recording.heading.topic, broker, queue_id), offset)
        for broker, queue_id, offset in arguments.to_offset
    )
    return reset_at(recording.samples, arguments.at, targets)


def _verdict(recording: Recording, began: float, watch: ResetWatch, *, is_json: bool) -> int:
    from rewindmq.client.admin.commands.reset_watch import LOST, UNKNOWN, queue_data
    from rewindmq.client.admin.watched_reset.run import common_state
    from rewindmq.watch.verdict.states import State

    state = common_state(queue.state for queue in watch.queues)
    if is_json:
        data = {
            "group": recording.heading.group,
            "topic": recording.heading.topic,
            "resetAt": recording.heading.began_ms + round(1_000 * began),
            "verdict": str(state),
            "queues": [queue_data(queue) for queue in watch.queues],
        }
        print(json.dumps(data))
    else:
        counts = Counter(str(queue.state) for queue in watch.queues)
        parts = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
        print(f"verdict: {state} ({parts})")
    return {State.PROVEN: 0, State.LOST: LOST}.get(state, UNKNOWN)


def _read(path: Path) -> bytes:
    from rewindmq.client.admin.commands.read_file import read_limited
    from rewindmq.watch.record.recording import MAX_BYTES

    return read_limited(str(path), MAX_BYTES, "the recording")
