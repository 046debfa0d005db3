"""Passed: counts the frames that have passed, to show them when a rule met none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from rewindmq.race.proxy.frame import GROUP_FIELDS

_SHOWN: Final = 12
# Kinds that are counted; a failure shows few of them.
_MAX_KINDS: Final = 10_000


class FrameKind(NamedTuple):
    """What a failure shows of a frame; empty texts are unknown."""

    name: str
    form: str
    client: str
    server: str
    group: str
    topic: str
    queue: str

    def __str__(self) -> str:
        texts = [f"{self.name} {self.form}"]
        named = zip(self._fields[2:], self[2:], strict=True)
        texts += [f"{field} {value}" for field, value in named if value]
        return ", ".join(texts)


class Passed:
    """Counts of all frames of a test, by kind."""

    def __init__(self) -> None:
        self._counts: Counter[FrameKind] = Counter()

    def add(self, client: str, details: Mapping[str, Any]) -> None:
        """Count a frame from its event's details (docs/race/proxy.md)."""
        fields = details["fields"]
        source, target = details["source"], details["target"]
        group = next((str(fields[name]) for name in GROUP_FIELDS if name in fields), "")
        topic, queue = str(fields.get("topic", "")), str(fields.get("queueId", ""))
        server = target if source == client else source
        kind = FrameKind(details["name"], details["form"], client, server, group, topic, queue)
        if kind in self._counts or len(self._counts) < _MAX_KINDS:
            self._counts[kind] += 1

    def counts(self) -> Counter[FrameKind]:
        """Return the counts of now, for ``text_since``."""
        return self._counts.copy()

    def text_since(self, before: Counter[FrameKind], name: str) -> str:
        """Return what has passed since then: first the frames of request ``name``, then the most frequent."""
        since = self._counts - before
        if not since:
            return "nothing passed"
        order = sorted(since.items(), key=lambda entry: (entry[0].name != name, -entry[1], entry[0]))
        lines = [f"  {kind}: {count} {'time' if count == 1 else 'times'}" for kind, count in order[:_SHOWN]]
        if len(order) > _SHOWN:
            lines.append(f"  and {len(order) - _SHOWN} other kinds")
        return "passed:\n" + "\n".join(lines)
