"""The marks of server-side resets (docs/spec/reset.md D.9).

Source: RocketMQ 5.3.3 ``ConsumerOffsetManager#assignResetOffset``, ``queryThenEraseResetOffset``. In memory
only, as in RocketMQ: a restart loses the marks (docs/spec/races.md E.16, S3).
"""

from __future__ import annotations

from collections.abc import Iterable

_Key = tuple[str, str, int]


class ResetOffsetTable:
    """The marks: for a group, topic and queue, the offset to which the broker redirects the next pull."""

    def __init__(self) -> None:
        self._targets: dict[_Key, int] = {}

    def __len__(self) -> int:
        return len(self._targets)

    def put(self, group: str, topic: str, queue_id: int, target: int) -> None:
        """Set a mark; it replaces an earlier one."""
        self._targets[group, topic, queue_id] = target

    def find(self, group: str, topic: str, queue_id: int) -> int | None:
        """Return the mark's offset, or None."""
        return self._targets.get((group, topic, queue_id)) if self._targets else None

    def collect(self, group: str, topic: str, queue_id: int) -> int | None:
        """Remove the mark and return its offset, or None."""
        return self._targets.pop((group, topic, queue_id), None) if self._targets else None

    def remove(self, group: str, topic: str, queue_ids: Iterable[int]) -> None:
        """Remove the marks that a later reset replaces."""
        for queue_id in queue_ids:
            self._targets.pop((group, topic, queue_id), None)

    def remove_group(self, group: str) -> None:
        """Remove the marks of a group whose offsets are removed."""
        for key in [key for key in self._targets if key[0] == group]:
            del self._targets[key]
