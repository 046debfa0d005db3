"""Which RocketMQ release a process imitates where releases differ (docs/spec/reset.md D.10)."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Profile(StrEnum):
    """One behaviour. Each part derives its own switches from it.

    ``unguarded`` is 4.9.4 without its checks of ``dropped``, the client of the seed's suspicion
    (docs/spec/races.md E.3); ``epoch`` is 4.9.4 that knows epochs, which ``fenced`` resets are made for.
    """

    V42 = "v42"
    V49 = "v49"
    V53 = "v53"
    # Clients that no release is; brokers and name servers treat them as v49.
    UNGUARDED = "unguarded"
    EPOCH = "epoch"

    @property
    def release(self) -> Profile:
        """The release it is, or is made from."""
        return Profile.V49 if self in (Profile.UNGUARDED, Profile.EPOCH) else self


RELEASES: Final = (Profile.V42, Profile.V49, Profile.V53)
