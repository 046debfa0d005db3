"""Finding: what a rule shows of a queue, in one sentence."""

from __future__ import annotations

from enum import StrEnum


class Finding(StrEnum):
    """What the samples of a queue show. ``TRANSITIONS`` says what follows from it."""

    AT_TARGET = "the stored offset is at the target"
    UNDERWAY = "the stored offset is between the target and the old offset"
    REDELIVERY = "a consumer works from the target on"
    FINISHED = "a consumer is through every message that the broker handed out again"
    FETCHED = "the consumers fetched as many messages as the redelivery has, and are through"
    HELD = "nothing has contradicted the redelivery for 40 s"
    UNMOVED = "the group was at the target already"
    PASSED = "the stored offset and every consumer have been at the target or past it for 40 s"
    JUMPED = "the stored offset is above messages that a consumer still holds"
    OVERTAKEN = "the stored offset is above what the broker has handed out again"
    UNTOUCHED = "the stored offset is not at the target, and nothing was redelivered"
    ALONE = "no consumer was connected before the reset, nor for 30 s since"
    OVER = "the time is over"
