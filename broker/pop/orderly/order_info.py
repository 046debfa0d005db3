"""What POP, acks and changes of invisible times ask about the order of a queue's messages.

RocketMQ 5.5.1 ``ConsumerOrderInfoManager``. Under it, a queue of a group is *blocked* while a message of its
last POP is neither acknowledged nor visible again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

# Results of ``commit_and_next`` that are no offset.
ILLEGAL_OFFSET: Final = -1
NOTHING_TO_COMMIT: Final = -2


class ConsumerOrderInfoManager(Protocol):
    """The last POP of each queue of a group; all calls are synchronous and short."""

    @property
    def last_cleared(self) -> int:
        """The latest POP time that was forgotten, in ms: a later POP must have another one."""

    def is_blocked(
        self, attempt_id: str | None, topic: str, group: str, queue_id: int, invisible_time: int
    ) -> bool:
        """Return True if the group may not pop the queue now.

        Args:
            attempt_id: of the POP; one that repeats the last POP's id is not blocked by it. None for no POP.
            topic: the real topic.
            invisible_time: ms, of this POP.
        """

    def update(
        self,
        attempt_id: str | None,
        topic: str,
        group: str,
        queue_id: int,
        pop_time: int,
        invisible_time: int,
        offsets: Sequence[int],
    ) -> list[str]:
        """Note that a POP delivers these messages; return their entries of ``orderCountInfo``."""

    def commit_and_next(self, topic: str, group: str, queue_id: int, offset: int, pop_time: int) -> int:
        """Note an ack.

        Returns:
            The offset to commit, ``ILLEGAL_OFFSET`` or ``NOTHING_TO_COMMIT``.
        """

    def update_next_visible_time(
        self, topic: str, group: str, queue_id: int, offset: int, pop_time: int, visible_at: int
    ) -> None:
        """Note that a message is visible again at ``visible_at`` (ms since 1970)."""

    def clear_block(self, topic: str, group: str, queue_id: int) -> None:
        """Forget the last POP of a queue that is reset."""

    def remove(self, *, topic: str | None = None, group: str | None = None) -> None:
        """Forget the queues of a topic or of a group that is deleted."""
