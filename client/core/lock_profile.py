"""How orderly consumers of each release lock their queues (docs/spec/client.md C.5, C.11)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class LockProfile:
    """How orderly consumers of one release lock their queues. Times are protocol seconds.

    Attributes:
        new_queue_is_locked: a consumer pulls a queue as soon as it takes it over; else only after the next
            refresh of the locks, at most 20 s later.
        locks_broadcasting: a broadcasting consumer also locks the queues it takes over. Nothing refreshes
            these locks, so the consumer never pulls the queues.
        refreshes_dropped: the refresh includes dropped queues that are still in the table.
        listener_wait: how long a consumer that gives up a queue waits for the queue's listener to end.
        forces_unlock: True: a queue that the consumer gives up is unlocked 20 s after the last refresh, even
            if its listener still runs; the offset is committed again before. False: the queue is unlocked
            after the listener has ended, or 20 s later if messages are left.
        reconsume_times_increment: added to the RECONSUME_TIME of a message that is sent to the retry topic.
    """

    new_queue_is_locked: bool
    locks_broadcasting: bool
    refreshes_dropped: bool
    listener_wait: float
    forces_unlock: bool
    reconsume_times_increment: int


LOCK_PROFILE_4: Final = LockProfile(
    new_queue_is_locked=False,
    locks_broadcasting=True,
    refreshes_dropped=True,
    listener_wait=1.0,
    forces_unlock=False,
    reconsume_times_increment=0,
)
LOCK_PROFILE_5: Final = LockProfile(
    new_queue_is_locked=True,
    locks_broadcasting=False,
    refreshes_dropped=False,
    listener_wait=0.5,
    forces_unlock=True,
    reconsume_times_increment=1,
)
