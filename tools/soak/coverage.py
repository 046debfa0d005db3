"""Checks that a soak exercised every action and feature; otherwise its promises were not tested."""

from __future__ import annotations

from collections import Counter
from typing import Final

from tools.soak.hostile import ATTACKS
from tools.soak.options import SoakOptions
from tools.soak.verdict import SoakVerdict, ViolationKind

# A shorter soak may miss some kinds of action.
MIN_MINUTES: Final = 1.5
_KILLS: Final = (
    "broker killed",
    "broker stopped",
    "consumer joined",
    "consumer killed",
    "consumer left",
    "name server killed",
    "name server stopped",
    "producer killed",
)
_RESETS: Final = ("classic reset", "server reset", "fenced reset")


def judge_coverage(options: SoakOptions, actions: Counter[str], verdict: SoakVerdict) -> None:
    """Add a violation for every kind of action, and every included feature, that the soak did not show."""
    if options.minutes < MIN_MINUTES:
        return
    needed = [f"{group.name}: messages" for group in options.groups]
    if "retries" not in options.without:
        needed += [
            f"{group.name}: dead letters"
            for group in options.groups
            if group.rules.max_reconsume_times is not None
        ]
    if "delays" not in options.without:
        needed.append("delayed messages")
    if "transactions" not in options.without:
        needed.append("committed transactions")
    if "resets" not in options.without:
        needed.append("SoakFenced: fenced rewinds of a queue, whole")
    for what in needed:
        if not verdict.counts[what]:
            verdict.add(ViolationKind.EMPTY, what)
    expected = [] if "kills" in options.without else list(_KILLS)
    expected += [] if "resets" in options.without else _RESETS
    expected += [] if "hostile" in options.without else ATTACKS
    for what in expected:
        if not actions[what]:
            verdict.add(ViolationKind.EMPTY, what)
