"""The marks that a reset in server mode leaves (docs/spec/reset.md D.9).

RocketMQ 5.3.3 ``ConsumerOffsetManager#assignResetOffset``, ``queryThenEraseResetOffset``. In memory only, as
there: a restart forgets them (docs/spec/races.md E.16, S3).
"""

from __future__ import annotations

from collections.abc import Iterable

_Key = tuple[str, str, int]


class ResetMarks:
    """Group, topic and queue to the offset that the next pull is told."""

    def __init__(self) -> None:
        self._targets: dict[_Key, int] = {}

    def __len__(self) -> int:
        return len(self._targets)

    def put(self, group: str, topic: str, queue_id: int, target: int) -> None:
        """Leave a mark, in place of any before it."""
        self._targets[group, topic, queue_id] = target

    def find(self, group: str, topic: str, queue_id: int) -> int | None:
        """The offset marked, None where there is no mark."""
        return self._targets.get((group, topic, queue_id)) if self._targets else None

    def collect(self, group: str, topic: str, queue_id: int) -> int | None:
        """The same, and the mark is gone."""
        return self._targets.pop((group, topic, queue_id), None) if self._targets else None

    def remove(self, group: str, topic: str, queue_ids: Iterable[int]) -> None:
        """Take away what a later reset has replaced."""
        for queue_id in queue_ids:
            self._targets.pop((group, topic, queue_id), None)

    def remove_group(self, group: str) -> None:
        """Take away those of a group whose offsets are forgotten."""
        for key in [key for key in self._targets if key[0] == group]:
            del self._targets[key]
