"""The marks of server-side resets (docs/spec/reset.md D.9).

Source: RocketMQ 5.3.3 ``ConsumerOffsetManager#assignResetOffset``, ``queryThenEraseResetOffset``. In memory
only, as in RocketMQ: a restart loses the marks (docs/spec/races.md E.16, S3).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping


class ResetOffsetTable:
    """The marks: for a group, topic and queue, the offset to which the broker redirects the next pull."""

    def __init__(self) -> None:
        # Group and topic to queue to offset.
        self._targets: dict[tuple[str, str], dict[int, int]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._targets.values()))

    def __bool__(self) -> bool:
        return bool(self._targets)

    def put(self, group: str, topic: str, targets: Mapping[int, int]) -> None:
        """Set the marks of queues; they replace earlier ones."""
        if targets:
            self._targets.setdefault((group, topic), {}).update(targets)

    def find(self, group: str, topic: str, queue_id: int) -> int | None:
        """Return the mark's offset, or None."""
        targets = self._targets.get((group, topic)) if self._targets else None
        return None if targets is None else targets.get(queue_id)

    def collect(self, group: str, topic: str, queue_id: int) -> int | None:
        """Remove the mark and return its offset, or None."""
        target = self.find(group, topic, queue_id)
        if target is not None:
            self.remove(group, topic, (queue_id,))
        return target

    def remove(self, group: str, topic: str, queue_ids: Iterable[int]) -> None:
        """Remove the marks that a later reset replaces."""
        targets = self._targets.get((group, topic))
        if targets is None:
            return
        for queue_id in queue_ids:
            targets.pop(queue_id, None)
        if not targets:
            del self._targets[group, topic]

    def remove_group(self, group: str) -> None:
        """Remove the marks of a group whose offsets are removed."""
        for key in [key for key in self._targets if key[0] == group]:
            del self._targets[key]

    def remove_topic(self, topic: str) -> None:
        """Remove the marks in a topic whose offsets are removed."""
        for key in [key for key in self._targets if key[1] == topic]:
            del self._targets[key]
