"""Checks that stored offsets of groups mean the same messages in a compaction as in its source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rewindmq.pipeline.snapshot.snapshot import StoreSnapshot
from rewindmq.pipeline.verify.claim import Proof
from rewindmq.pipeline.verify.report import Tally
from rewindmq.protocol.names import SCHEDULE_TOPIC

CONSUMER_OFFSETS: Final = "consumerOffset.json"
DELAY_OFFSETS: Final = "delayOffset.json"


def offsets_asked(proof: Proof) -> dict[tuple[str, int], list[int]]:
    """Return every offset that the source's configuration names, by queue."""
    asked: dict[tuple[str, int], list[int]] = {}
    for name, queues in _offset_table(proof.source, CONSUMER_OFFSETS).items():
        for queue_id, offset in queues.items():
            asked.setdefault((name.partition("@")[0], int(queue_id)), []).append(int(offset))
    for level, offset in _offset_table(proof.source, DELAY_OFFSETS).items():
        asked.setdefault((SCHEDULE_TOPIC, int(level) - 1), []).append(int(offset))
    return asked


def _offset_table(snapshot: StoreSnapshot, name: str) -> Mapping[str, Any]:
    return snapshot.config(name).get("offsetTable") or {}


def check_offsets(proof: Proof, ranks: Mapping[tuple[str, int, int], int], tally: Tally) -> None:
    """Check that each stored offset means the same message in the output.

    Args:
        ranks: (topic, queueId, offset) to the number of kept messages below that offset.
    """
    output = proof.source._replace(files=proof.output, root=proof.folder)
    kept = {
        (name, int(queue_id)): offset
        for name, queues in _offset_table(output, CONSUMER_OFFSETS).items()
        for queue_id, offset in queues.items()
    }
    wrong, checked = [], 0
    for name, queues in _offset_table(proof.source, CONSUMER_OFFSETS).items():
        topic = name.partition("@")[0]
        for queue_id, offset in queues.items():
            found = kept.get((name, int(queue_id)))
            if found is None:
                # A compaction store has no offsets of queues that it lacks.
                continue
            checked += 1
            expected = offset
            if proof.options.is_store:
                expected = ranks.get((topic, int(queue_id), offset), 0)
            # On a live store, groups have consumed since the compaction.
            is_right = found == expected if proof.is_settled else found <= expected
            if not is_right:
                text = f"{found} instead of {expected} for offset {offset} of the store"
                wrong.append((0, f"{name} queue {queue_id}: {text}"))
    tally.add(proof.number, "offset translated", checked, len(wrong), wrong)
