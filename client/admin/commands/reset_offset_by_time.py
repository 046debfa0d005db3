"""resetOffsetByTime: reset a group to a point in time, or one queue to an offset."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Final

from rewindmq.client.admin.commands.command import Command, Printed, java_bool, true_or_false
from rewindmq.client.admin.commands.reset_expected import check_expected
from rewindmq.client.admin.commands.reset_preview import print_preview
from rewindmq.client.admin.commands.reset_tables import describe_modes, mode_note, reset_data, reset_table
from rewindmq.client.admin.commands.reset_target import add_target, read_target
from rewindmq.client.admin.commands.reset_watch import watch_reset
from rewindmq.client.admin.reset_target import Target
from rewindmq.client.admin.watched_reset.brokers import Brokers
from rewindmq.client.admin.watched_reset.follow import PATIENCE
from rewindmq.client.admin.watched_reset.make_preview import make_preview
from rewindmq.client.admin.watched_reset.run import MAX_TIMES, TIMES
from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient
    from rewindmq.client.admin.reset_result import ResetResult


_WATCHED: Final = "--watch and --until-held reset every queue of the topic"
# The start of the first line. Keys: is the profile v53, and did the brokers reset the group?
_OPENINGS: Final = {
    (False, True): "rollback consumer offset by specified group",
    (False, False): "rollback consumer offset by specified consumerGroup",
    (True, True): "start reset consumer offset by specified, group",
    (True, False): "reset consumer offset by specified consumerGroup",
}


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-g", "--group", required=True, help="consumer group")
    parser.add_argument("-t", "--topic", required=True, help="topic name")
    add_target(parser)
    add_force(parser)
    parser.add_argument(
        "-c",
        "--cplus",
        action="store_true",
        help="the group's consumers are C++ clients; other clients ignore such a reset",
    )
    parser.add_argument("-b", "--broker", metavar="HOST:PORT", help="with -q: address of the queue's broker")
    parser.add_argument(
        "-q",
        "--queue",
        type=_queue_id,
        metavar="N",
        help="reset only this queue of broker -b; not in classic mode",
    )
    parser.add_argument(
        "-o", "--offset", type=_offset, metavar="N", help="with -q: the target offset, instead of -s"
    )
    add_mode(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--preview", action="store_true", help="show what the reset would do to each queue; change nothing"
    )
    what.add_argument(
        "--watch",
        action="store_true",
        help="after the reset, watch each queue until it is proven, lost or unknown; exit code 0 if all are "
        "proven, 3 if one is lost, 4 if one is unknown",
    )
    what.add_argument(
        "--until-held",
        action="store_true",
        help="as --watch, and reset lost queues again, and only them, until none is lost",
    )
    parser.add_argument(
        "--times",
        type=_times,
        metavar="N",
        help=f"with --until-held: how often at most (default: {TIMES})",
    )
    parser.add_argument(
        "--wait",
        type=_seconds,
        metavar="SECONDS",
        help=f"how long to watch before a queue is unknown (default: {PATIENCE:.0f})",
    )
    parser.add_argument(
        "--expect",
        metavar="FILE",
        help="what --preview --json printed: reset only if nothing has moved since; otherwise show what has, "
        "and end with exit code 5",
    )


def add_force(parser: argparse.ArgumentParser) -> None:
    """Define ``-f``."""
    parser.add_argument(
        "-f",
        "--force",
        type=true_or_false,
        default=True,
        metavar="true|false",
        help="false: reset a queue only if that moves it back (default: true)",
    )


def add_mode(parser: argparse.ArgumentParser) -> None:
    """Define ``--mode``."""
    parser.add_argument(
        "--mode",
        type=_mode,
        metavar="classic|server|fenced",
        help="reset mode (default: each broker's resetMode); in fenced mode, brokers refuse late commits",
    )


def _mode(text: str) -> ResetMode:
    try:
        return ResetMode(text.strip())
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be one of {', '.join(ResetMode)}, not {text!r}") from None


def _queue_id(text: str) -> int:
    return _count(text, 2**31 - 1)


def _offset(text: str) -> int:
    return _count(text, 2**63 - 1)


def _seconds(text: str) -> float:
    return float(_count(text, 86_400))


def _times(text: str) -> int:
    return _count(text, MAX_TIMES)


def _count(text: str, most: int) -> int:
    # Check the length first: int() raises another error for more than 4,300 digits.
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(most)) and int(text) <= most):
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 to {most}, not {text[:30]!r}")
    return int(text)


async def _execute(admin: AdminClient, arguments: argparse.Namespace) -> AsyncGenerator[Printed]:
    group, topic = arguments.group.strip(), arguments.topic.strip()
    _check(arguments)
    target = await read_target(admin, arguments, topic, group)
    if arguments.queue is not None:
        yield await _reset_queue(admin, arguments, topic, group, _time(target))
        return
    if arguments.preview:
        force, mode = arguments.force, arguments.mode
        yield print_preview(await make_preview(admin, topic, group, target, force=force, mode=mode))
        return
    brokers, preview = Brokers(admin), None
    if arguments.expect is not None:
        force, mode = arguments.force, arguments.mode
        found = await check_expected(
            admin, arguments.expect, topic, group, target, force=force, mode=mode, brokers=brokers
        )
        if isinstance(found, Printed):
            yield found
            return
        preview = found
    if not (arguments.watch or arguments.until_held):
        yield await _reset(admin, arguments, topic, group, target)
        return
    # Closed at once when the command is cancelled, so that no request outlives it.
    async with contextlib.aclosing(
        watch_reset(
            admin,
            topic,
            group,
            target,
            force=arguments.force,
            mode=arguments.mode,
            patience=PATIENCE if arguments.wait is None else arguments.wait,
            times=_repairs(arguments),
            preview=preview,
            brokers=brokers,
        )
    ) as output:
        async for printed in output:
            yield printed


def _repairs(arguments: argparse.Namespace) -> int:
    if not arguments.until_held:
        return 0
    return TIMES if arguments.times is None else int(arguments.times)


def _check(arguments: argparse.Namespace) -> None:
    """Refuse options that do not go together.

    Raises:
        ClientError: with what to leave out or add.
    """
    _check_queue(arguments)
    if arguments.times is not None and not arguments.until_held:
        raise ClientError("--times goes with --until-held: add it, or leave out --times")
    if arguments.wait is not None and not (arguments.watch or arguments.until_held):
        raise ClientError("--wait goes with --watch and --until-held: add one of them, or leave out --wait")
    if arguments.cplus and (arguments.to_offset or arguments.as_group or arguments.from_file):
        raise ClientError("-c resets the whole topic to a time: leave it out")
    if (arguments.watch or arguments.until_held) and arguments.cplus:
        raise ClientError(f"{_WATCHED}: leave out -b, -q, -o and -c")


def _check_queue(arguments: argparse.Namespace) -> None:
    """Refuse options that do not go with the reset of one queue."""
    if (arguments.queue is None) != (arguments.broker is None):
        raise ClientError("-b and -q go together: each broker numbers its own queues")
    if arguments.queue is None and arguments.offset is not None:
        raise ClientError("-o is the offset of one queue: name the queue with -b and -q")
    if arguments.offset is not None and not arguments.force:
        raise ClientError("-o moves the queue in either direction: use -f false only with -s")
    if arguments.expect is not None and (arguments.queue is not None or arguments.preview):
        raise ClientError("--expect guards the reset of a whole topic: leave out -b, -q, -o and --preview")
    if (arguments.watch or arguments.until_held) and arguments.queue is not None:
        raise ClientError(f"{_WATCHED}: leave out -b, -q, -o and -c")
    if arguments.cplus and arguments.queue is not None:
        raise ClientError("-c resets every queue of the topic: leave out -b, -q and -o, or -c")
    if arguments.preview and arguments.queue is not None:
        raise ClientError("--preview shows every queue of the topic: leave out -b, -q and -o")
    if arguments.queue is not None and arguments.timestamp is None:
        raise ClientError("-b and -q go with -s: use --to-offset for the offsets of single queues")


def _time(target: Target) -> int:
    # ``_check`` lets only -s through.
    assert isinstance(target, int)
    return target


async def _reset(
    admin: AdminClient, arguments: argparse.Namespace, topic: str, group: str, target: Target
) -> Printed:
    result = await admin.resets.reset(
        topic, group, target, mode=arguments.mode, force=arguments.force, is_cpp=arguments.cplus
    )
    return _printed(admin, arguments, result, topic, group, target if isinstance(target, int) else None)


def _printed(
    admin: AdminClient,
    arguments: argparse.Namespace,
    result: ResetResult,
    topic: str,
    group: str,
    timestamp: int | None,
) -> Printed:
    opening = _OPENINGS[admin.profile.release is Profile.V53, result.written is None]
    heading = f"{opening}[{group}], topic[{topic}], force[{java_bool(arguments.force)}], "
    if timestamp is None:
        heading += "offsets[by queue]"
    else:
        text = str(timestamp) if arguments.timestamp is None else arguments.timestamp.strip()
        heading += f"timestamp(string)[{text}], timestamp(long)[{timestamp}]"
    note = mode_note(result, arguments.mode)
    data = {
        "group": group,
        "topic": topic,
        "force": arguments.force,
        "timestamp": timestamp,
        **reset_data(result),
    }
    return Printed([heading if note is None else f"{heading}, {note}", *reset_table(result).lines], data)


async def _reset_queue(
    admin: AdminClient, arguments: argparse.Namespace, topic: str, group: str, timestamp: int
) -> Printed:
    if arguments.mode is None and admin.profile.release is Profile.V53:
        return await _reset_queue_as_5x(admin, arguments, topic, group, timestamp)
    result = await admin.resets.reset_queue(
        arguments.broker.strip(),
        topic,
        group,
        arguments.queue,
        timestamp=timestamp,
        offset=arguments.offset,
        force=arguments.force,
        mode=arguments.mode,
    )
    return _printed(admin, arguments, result, topic, group, timestamp)


async def _reset_queue_as_5x(
    admin: AdminClient, arguments: argparse.Namespace, topic: str, group: str, timestamp: int
) -> Printed:
    """Reset one queue as RocketMQ 5's tool does: under ``--profile v53`` without ``--mode``."""
    address, queue_id = arguments.broker.strip(), arguments.queue
    result = await admin.resets.reset_queue_as_5x(
        address, topic, group, queue_id, timestamp, arguments.offset
    )
    (target,) = result.offset_table.values()
    heading = (
        f"start reset consumer offset by specified, group[{group}], topic[{topic}], queueId[{queue_id}], "
        f"broker[{address}], timestamp(string)[{arguments.timestamp.strip()}], timestamp(long)[{timestamp}]"
    )
    lines = [heading, f"reset consumer offset to {target}"]
    if not result.modes:
        lines.append(
            "nothing was sent: RocketMQ 5's tool cannot reset to offset 0; use --mode server or --mode fenced"
        )
    data = {
        "group": group,
        "topic": topic,
        "queueId": queue_id,
        "offset": target,
        "applied": bool(result.modes),
        "mode": describe_modes(result),
    }
    return Printed(lines, data)


COMMAND: Final = Command(
    "resetOffsetByTime",
    "Reset a consumer group to a point in time, without restarting its consumers.",
    "-g my_group -t TopicTest -s 2026-01-31#08:00:00:000",
    _add_arguments,
    _execute,
)
