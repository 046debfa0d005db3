"""Title, facts and descriptions of losses that a report shows beside the history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from rewindmq.race.checker import Verdict
from rewindmq.race.scenario.scenario import Loss

LOSS_TEXTS: Final[Mapping[Loss, str]] = MappingProxyType(
    {
        Loss.L0: "the reset has no effect for a while, or on consumers that ignore resets",
        Loss.L1: "consumption begins again at the target, but the stored offset runs ahead of it",
        Loss.L2: "messages from the target on are never delivered again",
        Loss.L3: "two chains of pulls serve the same queue",
    }
)


@dataclass(frozen=True, slots=True)
class ReportMeta:
    """Description of a run.

    Attributes:
        title: one line.
        facts: values shown below the title, by name: profile, mode, stage, seed.
        text: a paragraph, or "".
    """

    title: str
    facts: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    text: str = ""


def headline(verdict: Verdict) -> str:
    """Return the verdict in a few words."""
    if not verdict.losses:
        return "The reset was kept"
    if verdict.losses == {Loss.L0}:
        return "L0: the reset had no effect for a while, or by design"
    return f"The reset was lost: {', '.join(sorted(verdict.losses))}"
