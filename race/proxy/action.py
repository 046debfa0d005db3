"""What a rule does with the frames that its pattern catches."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hold:
    """Hold frames until the rule releases, drops or refuses them."""


@dataclass(frozen=True, slots=True)
class Delay:
    """Hold each frame for ``seconds`` protocol seconds, more than 0; later frames overtake it."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Drop:
    """Drop frames: the receiver never gets them, and the sender is not told."""


@dataclass(frozen=True, slots=True)
class Fail:
    """Fail requests with a response code.

    The proxy answers a caught request itself, and the receiver never gets it. A caught response gets the code
    and the remark instead of its own, without fields and body. Oneway requests are not caught: they have no
    response.
    """

    code: int
    remark: str


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Pass frames on twice. Of the two responses to a request, the sender gets the first."""


Action = Hold | Delay | Drop | Fail | Duplicate
