"""The RocketMQ release that a process follows where releases differ (docs/spec/reset.md D.10)."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Profile(StrEnum):
    """The behaviour of one release; broker, name server and client each have a table of the differences.

    ``unguarded`` is 4.9.4 without its checks of ``dropped`` (docs/spec/races.md E.3). ``epoch`` is 4.9.4 with
    an epoch-aware client: its pulls and commits carry the queue's epoch, for ``fenced`` resets.
    """

    V42 = "v42"
    V49 = "v49"
    V53 = "v53"
    # Client profiles that match no release; brokers and name servers treat them as v49.
    UNGUARDED = "unguarded"
    EPOCH = "epoch"

    @property
    def release(self) -> Profile:
        """The release that the profile is or is based on."""
        return Profile.V49 if self in (Profile.UNGUARDED, Profile.EPOCH) else self


RELEASES: Final = (Profile.V42, Profile.V49, Profile.V53)
