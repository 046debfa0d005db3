"""``resetOffsetByTime --expect``: refuses a reset if something has moved since its preview."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rewindmq.client.admin.commands.command import Printed
from rewindmq.client.admin.commands.read_file import read_limited
from rewindmq.client.admin.reset_target import Target
from rewindmq.client.admin.watched_reset.brokers import Brokers
from rewindmq.client.admin.watched_reset.expected import MAX_BYTES, Expected, moved_since, read_expected
from rewindmq.client.admin.watched_reset.make_preview import make_preview
from rewindmq.client.admin.watched_reset.preview import Preview
from rewindmq.protocol.reset_mode import ResetMode

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient

# Exit code.
MOVED: Final = 5


async def check_expected(
    admin: AdminClient,
    path: str,
    topic: str,
    group: str,
    target: Target,
    *,
    force: bool,
    mode: ResetMode | None,
    brokers: Brokers,
) -> Preview | Printed:
    """Preview the reset again; return this preview, or what has moved since the preview in the file.

    Raises:
        ClientError: the file cannot be read, is no preview, or is the preview of another reset.
        ResponseError, RemotingError: see ``make_preview``.
    """
    # In a thread: decoding the preview of a large topic takes more than 10 ms.
    expected = await admin.runtime.workers.run(_read, path)
    now = await make_preview(admin, topic, group, target, force=force, mode=mode, brokers=brokers)
    moved = moved_since(expected, now)
    if not moved:
        return now
    lines = [
        f"nothing was reset: group[{group}], topic[{topic}] moved since the preview",
        *(f"MOVED: {text}" for text in moved),
        "preview the reset again",
    ]
    data = {"group": group, "topic": topic, "timestamp": now.timestamp, "verdict": "moved", "moved": moved}
    return Printed(lines, data, MOVED)


def _read(path: str) -> Expected:
    return read_expected(read_limited(path, MAX_BYTES, "the preview"))
