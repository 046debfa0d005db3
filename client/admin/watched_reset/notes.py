"""The notes of a preview: what an operator should know besides the queues' rows. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from rewindmq.client.admin.reset_target import Target
from rewindmq.client.admin.shared_ids import shared_id_warnings
from rewindmq.client.admin.timestamp import MAX_OFFSET_TIMESTAMP
from rewindmq.client.admin.watched_reset.broker_rules import BrokerRules
from rewindmq.client.admin.watched_reset.forecast import ResetRequest
from rewindmq.client.admin.watched_reset.preview import QueuePreview
from rewindmq.client.admin.watched_reset.survey import Survey
from rewindmq.protocol.names import retry_topic
from rewindmq.protocol.reset_mode import ResetMode

_NOT_MOVED: Final = (
    "a reset does not move delayed messages that are not due yet, nor messages of open transactions"
)
_MUTE: Final = "consumer {} did not answer, so it is not known which queues it has"


def notes_of(
    found: Survey,
    request: ResetRequest,
    target: Target,
    queues: Sequence[QueuePreview],
    *,
    is_known: bool,
) -> list[str]:
    """Return the notes.

    Args:
        is_known: some broker knows the group.
    """
    group, retry_lag = request.group, found.retry_lag
    notes = [_NOT_MOVED]
    if not is_known:
        notes.append(f"no broker of the topic knows group {group}: check the group's name")
    if retry_lag:
        notes.append(f"{retry_lag} messages wait in {retry_topic(group)}: the reset does not move them")
    if not request.is_online and not all(row.stays for row in queues):
        notes.append(
            "no consumer is connected: brokers store the offsets, and the next consumer starts there"
        )
    if unread := [row for row in queues if not row.is_read and not row.stays]:
        names = ", ".join(f"{row.queue.broker_name}:{row.queue.queue_id}" for row in unread)
        notes.append(f"no consumer reads {names}: their messages come again only with more read queues")
    notes += [_MUTE.format(client_id) for client_id in sorted(found.sample.silent)]
    if found.connection is not None:
        notes += shared_id_warnings(found.connection)
    return notes + _time_notes(target, found.rules, request)


def _time_notes(target: Target, rules: Mapping[str, BrokerRules], request: ResetRequest) -> list[str]:
    """Say what the time means at the brokers, which differs between releases."""
    if not isinstance(target, int) or target in (0, MAX_OFFSET_TIMESTAMP):
        return []
    meanings: dict[str, list[str]] = {}
    for name, each in rules.items():
        meanings.setdefault(_meaning(target, request.mode_at(each), each.is_nearest), []).append(name)
    return [f"the time at {', '.join(names)}: {text}" for text, names in meanings.items()]


def _meaning(timestamp: int, mode: ResetMode, is_nearest: bool | None) -> str:
    if timestamp < 0:
        return "the start of every queue" if mode is ResetMode.CLASSIC else "the end of every queue"
    if is_nearest is None:
        return "as its release searches"
    if is_nearest:
        return "the message nearest to it, and after the last message that message (as RocketMQ up to 5.1.0)"
    return "the first message stored then or later, and else the end (as RocketMQ from 5.1.1 on)"
