"""Names the races of docs/race/ that a lost reset fits. From outside, some races look the same."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Clues:
    """What was seen of a queue during the watch.

    Attributes:
        was_stored: the stored offset came to the target.
        had_consumer: a consumer had the queue after the reset.
        has_new_client: the consumer that has the queue joined after the reset.
        has_lost_client: a consumer of before the reset is gone.
        is_same_queue_object: the consumer has had the queue since before the reset, and consumed nothing.
        broker_was_away: the broker did not answer at times.
        is_broadcasting, is_pulling: the consumers' message model and type.
    """

    was_stored: bool = False
    had_consumer: bool = False
    has_new_client: bool = False
    has_lost_client: bool = False
    is_same_queue_object: bool = False
    broker_was_away: bool = False
    is_broadcasting: bool = False
    is_pulling: bool = False


def name_races(clues: Clues, *, has_jumped: bool) -> tuple[str, ...]:
    """Return the ids of the races that fit; the first that explains the clues by itself wins.

    A broker that did not answer may have been restarted, or only busy: then both kinds of races fit.
    """
    if has_jumped:
        return ("R1", "R2", "STALL")
    restarted = ("R11", "S3") if clues.broker_was_away and not clues.is_broadcasting else ()
    return tuple(dict.fromkeys((*restarted, *_races_without_restart(clues))))


def _races_without_restart(clues: Clues) -> tuple[str, ...]:
    rules = (
        (clues.is_broadcasting, ("BROADCAST",)),
        (clues.is_same_queue_object and clues.was_stored, ("S3", "S4", "S7")),
        # The mark of a server-side reset may be consumed between two samples.
        (clues.is_same_queue_object, ("R6b", "R7b", "S4")),
        (clues.is_pulling and not clues.had_consumer, ("PULL", "S6")),
        (clues.has_lost_client and clues.is_pulling, ("R7b", "S6")),
        (clues.has_lost_client, ("R7b", "R8", "R8-KILL")),
        (clues.has_new_client, ("R6",)),
        (not clues.had_consumer, ("UNASSIGNED",)),
    )
    rebuilt = ("ERR14", "R3a", "R3b", "R4", "R9", "R9b", "S5")
    return next((races for fits, races in rules if fits), rebuilt)
