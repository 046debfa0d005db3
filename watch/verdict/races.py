"""Names the races of docs/race/ that a lost reset fits. From outside, some races look the same."""

from __future__ import annotations

from rewindmq.watch.evidence.clues import Clues


def name_races(clues: Clues, *, has_jumped: bool, is_same_queue_object: bool) -> tuple[str, ...]:
    """Return the ids of the races that fit; the first that explains the clues by itself wins.

    A broker that did not answer may have been restarted, or only busy: then both kinds of races fit.

    Args:
        has_jumped: the loss is a stored offset above messages that a consumer holds.
        is_same_queue_object: see ``Untouched``.
    """
    if has_jumped:
        return ("R1", "R2", "STALL")
    restarted = ("R11", "S3") if clues.broker_was_away and not clues.is_broadcasting else ()
    return tuple(dict.fromkeys((*restarted, *_races_without_restart(clues, is_same_queue_object))))


def _races_without_restart(clues: Clues, is_same_queue_object: bool) -> tuple[str, ...]:
    rules = (
        (clues.is_broadcasting, ("BROADCAST",)),
        (is_same_queue_object and clues.was_stored, ("S3", "S4", "S7")),
        # The mark of a server-side reset may be consumed between two samples.
        (is_same_queue_object, ("R6b", "R7b", "S4")),
        (clues.is_pulling and not clues.had_consumer, ("PULL", "S6")),
        (clues.has_lost_client and clues.is_pulling, ("R7b", "S6", "UNASSIGNED")),
        (clues.has_lost_client, ("R7b", "R8", "R8-KILL")),
        (clues.has_new_client, ("R6",)),
        (not clues.had_consumer, ("UNASSIGNED",)),
    )
    rebuilt = ("ERR14", "R3a", "R3b", "R4", "R9", "R9b", "S4", "S5")
    return next((races for fits, races in rules if fits), rebuilt)
