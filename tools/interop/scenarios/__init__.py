"""What every client must be able to do; importing this package fills ``SCENARIOS``."""

from tools.interop.scenarios import (
    consuming,
    filtering,
    pulling,
    requesting,
    resetting,
    retrying,
    sending,
    tracing,
    transactions,
    watching,
)
from tools.interop.scenarios.scenario import SCENARIOS, InteropScenario, InteropStage

__all__ = (
    "SCENARIOS",
    "InteropScenario",
    "InteropStage",
    "consuming",
    "filtering",
    "pulling",
    "requesting",
    "resetting",
    "retrying",
    "sending",
    "tracing",
    "transactions",
    "watching",
)
