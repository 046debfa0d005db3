"""Table of the models."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.errors import RaceError
from rewindmq.race.explore.model.model import Model, PlannedReset

_MODELS: Final = (
    Model(
        "one-reset",
        "one queue, two consumers, one reset",
        late_to_break=MappingProxyType({ResetMode.CLASSIC: 0, ResetMode.SERVER: 1}),
    ),
    Model(
        "two-resets",
        "one queue, two consumers, one reset, and a second reset at any time after the first",
        resets=(PlannedReset(0), PlannedReset(1)),
    ),
    Model(
        "crash-consumer",
        "one reset, and the queue's owner may be killed",
        crashes=("consumer-A",),
        window=32.0,
        late_to_break=MappingProxyType({ResetMode.CLASSIC: 0, ResetMode.SERVER: 1}),
    ),
    Model(
        "crash-broker",
        "one reset, and the broker may be killed and started again",
        crashes=("broker-a",),
        # A blocked listener as well would make too many schedules for an exhaustive search.
        blocked=frozenset(),
        budget=0,
        late_to_break=MappingProxyType({ResetMode.CLASSIC: 0, ResetMode.SERVER: 0}),
    ),
    Model(
        "join",
        "one reset, and a consumer that takes the queue over may join",
        consumers=("B", "C"),
        joins=("A",),
    ),
    Model(
        "large",
        "two queues, three consumers, two resets, a crash, and sends in between; for random search",
        queues=2,
        messages=3,
        consumers=("A", "B", "C"),
        crashes=("consumer-A", "broker-a"),
        resets=(PlannedReset(0), PlannedReset(1)),
        sends=2,
        blocked=frozenset({(0, 2), (1, 2)}),
        window=40.0,
        budget=3,
        late_to_break=MappingProxyType({ResetMode.CLASSIC: 0, ResetMode.SERVER: 0}),
    ),
)
MODELS: Final[Mapping[str, Model]] = MappingProxyType({model.name: model for model in _MODELS})

# The profile of the consumers that each mode is designed for.
DEFAULT_PROFILES: Final[Mapping[ResetMode, Profile]] = MappingProxyType(
    {ResetMode.CLASSIC: Profile.V49, ResetMode.SERVER: Profile.V53, ResetMode.FENCED: Profile.EPOCH}
)


def find_model(name: str) -> Model:
    """Return the model with this name.

    Raises:
        RaceError: no model has this name; the text lists the names.
    """
    if name not in MODELS:
        raise RaceError(f"no such model: {name!r} (known: {', '.join(MODELS)})")
    return MODELS[name]
