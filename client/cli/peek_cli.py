"""``rewindmq peek``: prints messages of a topic without a consumer group.

With ``--json``, standard output gets one JSON object per message.
"""

from __future__ import annotations

import argparse
import base64
import heapq
import json
import sys
from collections.abc import AsyncIterator, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from rewindmq.client.cli.admin_work import run_with_admin
from rewindmq.protocol.remoting.process.options import positive_int

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient
    from rewindmq.protocol.message import MessageExt
    from rewindmq.protocol.message_queue import MessageQueue
    from rewindmq.protocol.remoting.runtime import Runtime

EPILOG: Final = """\
examples:
  rewindmq peek orders                          the ten newest messages of the topic
  rewindmq peek orders -c 100 --json            the hundred newest, a JSON object each
  rewindmq peek orders --all                    all messages, queue after queue
  rewindmq peek orders --follow                 the newest, and each new one until Ctrl-C
  rewindmq peek orders --key order-4711         the newest with this key
  rewindmq peek jobs -g workers                 what a group that pops would get next
"""

_DEFAULT_COUNT: Final = 10
_PULL_MESSAGES: Final = 32
# Seconds between two looks for new messages.
_FOLLOW_SECONDS: Final = 0.2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options of ``peek``."""
    parser.add_argument("topic", metavar="TOPIC", help="topic name")
    parser.add_argument(
        "-n", "--namesrv", metavar="ADDR", help="host:port[;host:port] (default: NAMESRV_ADDR)"
    )
    parser.add_argument(
        "-c",
        "--count",
        type=positive_int,
        default=_DEFAULT_COUNT,
        metavar="N",
        help=f"print the N newest messages (default: {_DEFAULT_COUNT})",
    )
    parser.add_argument(
        "-g", "--group", metavar="GROUP", help="print what this group would pop next from each broker"
    )
    parser.add_argument("--all", action="store_true", help="print all messages, queue after queue")
    parser.add_argument("--key", metavar="KEY", help="print only messages with this key")
    parser.add_argument("--follow", action="store_true", help="then print each new message, until Ctrl-C")
    parser.add_argument("--json", action="store_true", help="print one JSON object per message")


def run(arguments: argparse.Namespace) -> int:
    """Print messages, and return the exit code."""
    return run_with_admin(arguments.namesrv, partial(_peek, arguments=arguments))


async def _peek(admin: AdminClient, runtime: Runtime, arguments: argparse.Namespace) -> None:
    topic, count = arguments.topic, arguments.count
    if arguments.group is not None:
        await _peek_group(admin, arguments)
        return
    ends = await _bounds(admin, topic)
    if arguments.key is not None:
        _print(await _with_key(admin, topic, arguments.key, count), as_json=arguments.json)
    elif arguments.all:
        for queue, (begin, end) in ends.items():
            async for messages in _pages(admin, queue, begin, end):
                _print(messages, as_json=arguments.json)
    else:
        _print(await _newest(admin, ends, count), as_json=arguments.json)
    positions = {queue: end for queue, (_, end) in ends.items()}
    while arguments.follow:
        await runtime.timers.sleep(_FOLLOW_SECONDS)
        for queue, (begin, end) in (await _bounds(admin, topic)).items():
            start = max(positions.get(queue, begin), begin)
            positions[queue] = end
            async for messages in _pages(admin, queue, start, end):
                wanted = [each for each in messages if _has_key(each, arguments.key)]
                _print(wanted, as_json=arguments.json)


async def _peek_group(admin: AdminClient, arguments: argparse.Namespace) -> None:
    from rewindmq.protocol.errors import ClientError

    if arguments.all or arguments.follow or arguments.key is not None:
        raise ClientError("-g shows what a group would pop next: leave out --all, --key and --follow")
    count = min(arguments.count, _PULL_MESSAGES)
    found = await admin.messages.peek_messages(arguments.topic, arguments.group, count)
    _print(found, as_json=arguments.json)


async def _bounds(admin: AdminClient, topic: str) -> dict[MessageQueue, tuple[int, int]]:
    table = (await admin.topics.examine_topic_stats(topic)).offset_table
    return {queue: (entry.min_offset, entry.max_offset) for queue, entry in sorted(table.items())}


async def _newest(
    admin: AdminClient, bounds: dict[MessageQueue, tuple[int, int]], count: int
) -> list[MessageExt]:
    """Return the newest messages of all queues, the oldest of them first."""
    found: list[MessageExt] = []
    for queue, (begin, end) in bounds.items():
        async for messages in _pages(admin, queue, max(begin, end - count), end):
            found += messages
    # Messages of one millisecond are in the order of their broker's log.
    newest = heapq.nlargest(count, found, key=lambda each: (each.store_timestamp, each.commit_log_offset))
    return newest[::-1]


async def _with_key(admin: AdminClient, topic: str, key: str, count: int) -> list[MessageExt]:
    from rewindmq.protocol.code import ResponseCode
    from rewindmq.protocol.errors import ResponseError

    try:
        return (await admin.messages.query_message(topic, key))[-count:]
    except ResponseError as error:
        if error.code != ResponseCode.NO_MESSAGE:
            raise
        return []


async def _pages(
    admin: AdminClient, queue: MessageQueue, offset: int, end: int
) -> AsyncIterator[list[MessageExt]]:
    """Yield the messages of a queue up to ``end``, as the broker returns them."""
    while offset < end:
        page = await admin.messages.pull_messages(queue, offset, min(_PULL_MESSAGES, end - offset))
        if page.messages:
            yield page.messages
        if page.next_begin_offset <= offset:
            return
        offset = page.next_begin_offset


def _has_key(message: MessageExt, key: str | None) -> bool:
    return key is None or key in (message.keys or "").split(" ")


def _print(messages: Iterable[MessageExt], *, as_json: bool) -> None:
    from rewindmq.protocol.text import escape_controls

    for message in messages:
        if as_json:
            print(json.dumps(_as_json(message), ensure_ascii=True, separators=(",", ":")))
        else:
            print(escape_controls(_as_line(message)))
    sys.stdout.flush()


def _as_line(message: MessageExt) -> str:
    from rewindmq.client.admin.timestamp import format_milliseconds

    parts = [
        format_milliseconds(message.store_timestamp),
        f"{message.broker_name}/{message.queue_id}",
        f"@{message.queue_offset}",
    ]
    if message.tags:
        parts.append(f"tags={message.tags}")
    if message.keys:
        parts.append(f"keys={message.keys}")
    return f"{' '.join(parts)}  {_body(message).decode('utf-8', 'backslashreplace')}"


def _as_json(message: MessageExt) -> dict[str, Any]:
    body = _body(message)
    row: dict[str, Any] = {
        "topic": message.topic,
        "brokerName": message.broker_name,
        "queueId": message.queue_id,
        "queueOffset": message.queue_offset,
        "storeTimestamp": message.store_timestamp,
        "msgId": message.msg_id,
        "tags": message.tags,
        "keys": message.keys,
        "properties": message.properties,
    }
    try:
        return row | {"body": body.decode()}
    except UnicodeDecodeError:
        return row | {"bodyBase64": base64.b64encode(body).decode()}


def _body(message: MessageExt) -> bytes:
    """Return the body; a body that cannot be inflated is shown as it is stored."""
    from rewindmq.protocol.errors import ClientError

    try:
        return bytes(message.body)
    except ClientError:
        return bytes(message.stored_body)
