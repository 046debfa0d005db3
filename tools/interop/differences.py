"""Explained differences between an outcome at RewindMQ and the outcome at RocketMQ.

A difference that is not listed here fails the suite. So does an entry that no run needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from tools.interop.versions import SERVER_4


@dataclass(frozen=True)
class Difference:
    """The explained difference between two lists.

    Attributes:
        why: one line, for the compatibility page.
        rewindmq: entries that only RewindMQ's list has.
        rocketmq: entries that only RocketMQ's list has.
    """

    why: str
    rewindmq: frozenset[str] = frozenset()
    rocketmq: frozenset[str] = frozenset()

    def covers(self, rewindmq: object, rocketmq: object) -> bool:
        """True if the two lists differ exactly by this."""
        if not isinstance(rewindmq, list) or not isinstance(rocketmq, list):
            return False
        return {*rewindmq} - {*rocketmq} == self.rewindmq and {*rocketmq} - {*rewindmq} == self.rocketmq


_REAL_QUEUE: Final = Difference(
    "v53 imitates 5.3.3, which keeps REAL_TOPIC and REAL_QID in a committed message, as 4.x; 5.5.0 does not",
    rewindmq=frozenset(("REAL_TOPIC", "REAL_QID")),
)
# Server, feature, and the path of names to the value in the outcome.
Place = tuple[str, str, tuple[str, ...]]
EXPLAINED: Final[dict[Place, Difference]] = {
    ("rewindmq-v53", "send-batch", ("message", "properties")): Difference(
        "v53 imitates 5.3.3, which copies the properties of a batch to its messages; 5.5.0 does not",
        rewindmq=frozenset(("CLUSTER", "MSG_REGION", "TRACE_ON")),
    ),
    ("rewindmq-v49", "dashboard", ("cluster", "runtime figures")): Difference(
        "RewindMQ writes getTransferredTps in both spellings",
        rewindmq=frozenset(("getTransferredTps",)),
    ),
    ("rewindmq-v53", "dashboard", ("cluster", "runtime figures")): Difference(
        "RewindMQ writes getTransferredTps in both spellings; 5.5.0 has no brokerVersion, 5.3.3 has",
        rewindmq=frozenset(("getTransferedTps", "brokerVersion")),
    ),
    ("rewindmq-v53", "send-transaction", ("delivered", "committed", "properties")): _REAL_QUEUE,
    ("rewindmq-v53", "send-transaction", ("delivered", "committed by check", "properties")): _REAL_QUEUE,
}


# Scenarios that cannot work, by client, feature and RocketMQ cluster, to what the library lacks there.
_LITE_PULL: Final = "lite pull without LITE_PULL_MESSAGE (361), which 4.x does not serve"
UNPLAYED: Final[dict[tuple[str, str, str], str]] = {
    (client, "lite-pull", f"rocketmq-{SERVER_4}"): _LITE_PULL for client in ("java-550-json", "spring")
}


def differing(rewindmq: Any, rocketmq: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the paths of the values that differ, as deep as both sides have fields of the same name."""
    if isinstance(rewindmq, dict) and isinstance(rocketmq, dict):
        for name in rewindmq | rocketmq:
            yield from differing(rewindmq.get(name), rocketmq.get(name), (*path, name))
    elif rewindmq != rocketmq:
        yield path


def at(outcome: Any, path: Iterable[str]) -> Any:
    """Return the value at a path, None if there is none."""
    for name in path:
        outcome = outcome.get(name) if isinstance(outcome, dict) else None
    return outcome
