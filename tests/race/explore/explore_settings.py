"""Parameters of searches that several tests share."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import pytest

from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.explore.model.models import DEFAULT_PROFILES, find_model
from rewindmq.race.explore.search.job import Setting

# A search that takes minutes.
FULL = pytest.mark.slow(full_only="each mode has a model that CI searches")


def setting_of(
    model: str,
    mode: ResetMode,
    *,
    late: int = 0,
    profile: Profile | None = None,
    fault: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Setting:
    """Return the setting of a model, with the default consumers of its mode."""
    return Setting(find_model(model), mode, profile or DEFAULT_PROFILES[mode], late, fault)
