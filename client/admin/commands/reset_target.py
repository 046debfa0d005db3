"""The options that say where ``resetOffsetByTime`` moves a group to."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Final

from rewindmq.client.admin.commands.read_file import read_limited
from rewindmq.client.admin.reset_target import Target
from rewindmq.client.admin.target_offsets import MAX_BYTES, offsets_of_group, read_offsets, unique_offsets
from rewindmq.client.admin.timestamp import MAX_OFFSET_TIMESTAMP, parse_duration
from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.message_queue import MessageQueue

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient

# No message is older than 1970.
_EARLIEST: Final = 0
_OFFSET: Final = re.compile(r"(.+):([0-9]{1,10})=([0-9]{1,19})")


def add_target(parser: argparse.ArgumentParser) -> None:
    """Define ``-s`` and the options that stand for it; one of them is required."""
    options = parser.add_mutually_exclusive_group(required=True)
    options.add_argument(
        "-s",
        "--timestamp",
        help="milliseconds, yyyy-MM-dd#HH:mm:ss:SSS in local time, -1 for the end of every queue, or now "
        "(the end of every queue with --profile v49, the current time with v42 and v53)",
    )
    options.add_argument(
        "--to", choices=("earliest", "latest"), help="the start or the end of every queue, as -s 0 and -s -1"
    )
    options.add_argument(
        "--ago", type=_duration, metavar="DURATION", help="this long before now: 90s, 15m, 2h or 7d"
    )
    options.add_argument(
        "--to-offset",
        type=offset_of_queue,
        action="append",
        metavar="BROKER:QUEUE=OFFSET",
        help="an offset for a queue, as in broker-a:0=100; repeat it for other queues. Not in classic mode "
        "while consumers run",
    )
    options.add_argument(
        "--as-group",
        metavar="GROUP",
        help="the stored offset of another group in each queue of the topic; see --to-offset",
    )
    options.add_argument(
        "--from-file",
        metavar="FILE",
        help="offsets from a JSON file; see --to-offset, and docs/watched_reset.md",
    )


async def read_target(admin: AdminClient, arguments: argparse.Namespace, topic: str, group: str) -> Target:
    """Return the time or the offsets that the options name.

    Raises:
        ClientError: the time, the file or the other group is unfit; the text says what to do.
        ResponseError, RemotingError: a broker refused to tell the other group's offsets, or did not answer.
    """
    if arguments.timestamp is not None:
        return admin.parse_timestamp(arguments.timestamp.strip())
    if arguments.to is not None:
        return _EARLIEST if arguments.to == "earliest" else MAX_OFFSET_TIMESTAMP
    if arguments.ago is not None:
        return max(0, admin.runtime.clock.now_ms() - int(arguments.ago))
    if arguments.as_group is not None:
        source = arguments.as_group.strip()
        if source == group:
            raise ClientError(f"{group} is already where it is: name another group with --as-group")
        return await offsets_of_group(admin, topic, source)
    if arguments.from_file is not None:
        path = arguments.from_file
        return await admin.runtime.workers.run(
            lambda: read_offsets(read_limited(path, MAX_BYTES, "the file of offsets"), topic)
        )
    return unique_offsets(
        (MessageQueue(topic, broker, queue_id), offset) for broker, queue_id, offset in arguments.to_offset
    )


def _duration(text: str) -> int:
    """Parse a duration to ms."""
    try:
        return parse_duration(text)
    except ClientError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def offset_of_queue(text: str) -> tuple[str, int, int]:
    """Parse ``BROKER:QUEUE=OFFSET`` for argparse."""
    match = _OFFSET.fullmatch(text.strip())
    if match is None or int(match[2]) >= 2**31 or int(match[3]) >= 2**63:
        raise argparse.ArgumentTypeError(
            f"must be BROKER:QUEUE=OFFSET, as in broker-a:0=100, not {text[:60]!r}"
        )
    return match[1], int(match[2]), int(match[3])
