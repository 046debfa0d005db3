"""Searches that the tests of the exploration share."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import pytest

from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.explore.model.models import DEFAULT_PROFILES, find_model
from rewindmq.race.explore.search.pool import Setting

# Searches that take minutes, of which only ``--full`` makes all; and those of seconds, which CI makes.
FULL = (pytest.mark.long, pytest.mark.computing)
CHOSEN = (*FULL, pytest.mark.chosen)


def setting_of(
    model: str,
    mode: ResetMode,
    *,
    late: int = 0,
    profile: Profile | None = None,
    fault: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Setting:
    """A model of the catalogue, with the consumers its mode was made for."""
    return Setting(find_model(model), mode, profile or DEFAULT_PROFILES[mode], late, fault)
