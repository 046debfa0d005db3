"""RaceCase and RaceRun: which simulated race to play, and its outcome; as the worker process prints it."""

from __future__ import annotations

import msgspec

from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode


class RaceCase(msgspec.Struct, frozen=True):
    """What to play.

    Attributes:
        id: of the race, such as ``R1``.
        seed: of the simulation; the same seed has the same history, byte for byte.
    """

    id: str
    profile: Profile
    mode: ResetMode
    seed: int


class BrokenLaw(msgspec.Struct, frozen=True):
    """A law that the reset broke: the loss, the virtual second, and what happened in one sentence."""

    loss: str
    at: float
    text: str


class RaceRun(msgspec.Struct, frozen=True):
    """The outcome of one run.

    Attributes:
        headline: the verdict in a few words.
        losses: sorted, such as ``["L1"]``; none: the reset was kept.
        is_documented: whether the documented outcome came.
        queue: ``BROKER/QUEUE`` that the drawing shows; "": there is only one.
        drawing: SVG in HTML, every text escaped.
        error: why the run could not be played to its end; None if it was.
    """

    headline: str
    losses: list[str]
    is_documented: bool
    broken: list[BrokenLaw]
    queue: str
    drawing: str
    error: str | None = None
