"""What orderly consumers of a release do about the locks of their queues (docs/spec/client.md C.5, C.11)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class LockProfile:
    """Times are protocol seconds.

    Attributes:
        new_queue_is_locked: a queue is pulled as soon as it is taken over; else the next refresh, at most
        20 s
            later, has to find it locked first.
        locks_broadcasting: a broadcasting member locks the queues it takes over too, and because nothing
            refreshes those, never pulls them.
        refreshes_dropped: the refresh goes on for queues that were given up and are still in the table.
        listener_wait: how long a queue given up waits for its listener to come to an end.
        forces_unlock: 20 s after its last refresh the lock goes whatever the listener does, and the offset
            is committed once more with it; else a queue with messages left keeps its lock for 20 s more.
        sent_back_again: what RECONSUME_TIME a message sent to the retry topic counts on top of its own.
    """

    new_queue_is_locked: bool
    locks_broadcasting: bool
    refreshes_dropped: bool
    listener_wait: float
    forces_unlock: bool
    sent_back_again: int


LOCK_PROFILE_4: Final = LockProfile(
    new_queue_is_locked=False,
    locks_broadcasting=True,
    refreshes_dropped=True,
    listener_wait=1.0,
    forces_unlock=False,
    sent_back_again=0,
)
LOCK_PROFILE_5: Final = LockProfile(
    new_queue_is_locked=True,
    locks_broadcasting=False,
    refreshes_dropped=False,
    listener_wait=0.5,
    forces_unlock=True,
    sent_back_again=1,
)
