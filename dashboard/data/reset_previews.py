"""Previews of a reset for a page: where the group goes, and what the reset would do to each queue."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Final

import msgspec

from rewindmq.client.admin.reset_target import Target
from rewindmq.client.admin.target_offsets import offsets_of_group, unique_offsets
from rewindmq.client.admin.timestamp import MAX_OFFSET_TIMESTAMP, parse_duration
from rewindmq.client.admin.watched_reset.brokers import Brokers
from rewindmq.client.admin.watched_reset.expected import Expected, expected_of
from rewindmq.client.admin.watched_reset.make_preview import make_preview
from rewindmq.client.admin.watched_reset.preview import Preview
from rewindmq.dashboard.data.answer import Answer
from rewindmq.dashboard.data.cluster_source import ClusterSource, Queues
from rewindmq.protocol.body.stats import TopicOffset
from rewindmq.protocol.command import DECODE_FAILURES
from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.reset_mode import ResetMode

AIMS: Final = {
    "earliest": "the oldest messages",
    "latest": "the end of every queue",
    "time": "a time",
    "ago": "a time before now",
    "group": "where another group is",
}
# Protocol seconds. A preview asks for some messages of each queue; 1,000 queues take about a second.
PREVIEW_SECONDS: Final = 20.0
# Queues of a reset that a page carries out. Its table shows as many, so who confirms has seen all of them.
MAX_QUEUES: Final = 1_000
# What the page saw of them, as its form sends it back.
MAX_EXPECTED_BYTES: Final = 2 * 1024 * 1024
# Times, offsets and ids of queues are below it.
_END: Final = 2**63


@dataclass(frozen=True)
class Previewed:
    """A preview, or in one sentence why there is none; both are None if none was asked for.

    Attributes:
        brokers: knows the routes that the preview needed.
        status: the HTTP status of a page about it: 404 if the topic or a group does not exist, 400 if the
            query names no target.
    """

    preview: Preview | None
    problem: str | None = None
    status: int = 200
    brokers: Brokers | None = None


def target_of(to: str, at: int | None, ago: str, now_ms: int) -> int:
    """Return the time that a form names, in ms since 1970; -1 is the end of every queue.

    Args:
        to: a key of ``AIMS``.
        at: the time, for ``time``.
        ago: such as ``2h``, for ``ago``.

    Raises:
        ClientError: the form names no target; the text says what to do.
    """
    if to == "earliest":
        return 0
    if to == "latest":
        return MAX_OFFSET_TIMESTAMP
    if to == "time":
        if at is None or at < 0:
            raise ClientError("Enter the time to go to, in 1970 or later")
        return at
    if to == "ago":
        try:
            return max(0, now_ms - parse_duration(ago))
        except ClientError as error:
            raise ClientError(f"The time before now {error}") from None
    raise ClientError(f"Choose where the group goes: {', '.join(AIMS)}")


class ShownPreview(Expected, frozen=True):
    """What a page showed of a preview.

    Attributes:
        as_group: the group whose stored offsets the target is; "": none.
    """

    as_group: str = ""


def pack_expected(preview: Preview, as_group: str = "") -> str:
    """Return what a form sends back of the preview that it confirms, as JSON in base64."""
    shown = ShownPreview(**msgspec.structs.asdict(expected_of(preview)) | {"as_group": as_group})
    return base64.urlsafe_b64encode(msgspec.json.encode(shown)).decode()


def unpack_expected(text: str, group: str) -> ShownPreview:
    """Return what ``pack_expected`` packed.

    Raises:
        ClientError: the text is too long, or no preview of the group that a page could have shown.
    """
    if len(text) > MAX_EXPECTED_BYTES:
        raise ClientError(f"What the form says of its preview has more than {MAX_EXPECTED_BYTES:,} bytes")
    try:
        data = base64.b64decode(text.encode("ascii"), altchars=b"-_", validate=True)
        expected = msgspec.json.decode(data, type=ShownPreview)
    except (binascii.Error, UnicodeEncodeError, *DECODE_FAILURES):
        raise ClientError("The form does not say what its preview showed: preview the reset again") from None
    if expected.group != group:
        raise ClientError(f"The form is of group {expected.group}, not {group}: preview the reset again")
    numbers = [expected.timestamp or 0]
    for queue in expected.queues:
        numbers += (queue.queue_id, queue.target_offset)
    if not expected.force or not all(MAX_OFFSET_TIMESTAMP <= number < _END for number in numbers):
        raise ClientError("The form is of another kind of reset: preview the reset again")
    return expected


def target_of_expected(expected: Expected) -> Target:
    """Return the time, or for a reset to another group's offsets the offset of each queue.

    Raises:
        ClientError: a queue is named twice.
    """
    if expected.timestamp is not None:
        return expected.timestamp
    return unique_offsets(
        (MessageQueue(expected.topic, queue.broker_name, queue.queue_id), queue.target_offset)
        for queue in expected.queues
    )


async def preview_of(
    source: ClusterSource, group: str, topic: str, target: Target | str, mode: ResetMode | None = None
) -> Previewed:
    """Ask what a reset would do now. A broker that hangs is named after 2 s; nothing is changed.

    Args:
        target: a time, offsets, or the name of a group: its stored offsets.
    """
    brokers = Brokers(source.admin)
    # First, because the questions of a preview would wait longer for a broker that hangs.
    queues = await source.topic_queues(topic, brokers.routes)
    if queues.value is None or queues.value.problems:
        return _unready(topic, queues)
    if isinstance(target, str):
        offsets = await source.ask(offsets_of_group(source.admin, topic, target), PREVIEW_SECONDS)
        if offsets.value is None:
            # Every broker has just answered, so what is missing is the group.
            status = 404 if isinstance(offsets.error, ClientError) else 200
            problem = f"The offsets of group {target} cannot be taken: {offsets.problem}."
            return Previewed(None, problem, status)
        target = offsets.value
    asking = make_preview(
        source.admin, topic, group, target, mode=mode, brokers=brokers, listed=queues.value.rows
    )
    answer = await source.ask(asking, PREVIEW_SECONDS)
    if answer.value is None:
        return Previewed(None, f"The preview failed: {answer.problem}.")
    if not answer.value.knows_group:
        return Previewed(
            None,
            f"Group {group} is gone, or has another name: no broker of topic {topic} knows it.",
            404,
        )
    return Previewed(answer.value, brokers=brokers)


def _unready(topic: str, queues: Answer[Queues[TopicOffset]]) -> Previewed:
    """Return why there can be no preview of the topic now."""
    if queues.value is None:
        is_absent = queues.is_absent
        return Previewed(
            None, f"Topic {topic}: {queues.problem}." if is_absent else queues.sentence, queues.status
        )
    silent = "; ".join(f"{name}: {problem}" for name, problem in sorted(queues.value.problems.items()))
    return Previewed(None, f"There is no preview without every broker of the topic. {silent}.")
