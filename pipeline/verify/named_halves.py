"""Reads which half messages the op records of a log name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from rewindmq.protocol.names import TRANS_HALF_TOPIC, TRANS_OP_HALF_TOPIC

if TYPE_CHECKING:
    import pyarrow as pa

NAMED_SCHEMA: Final = "topic string, queueId int, queueOffset bigint"
_NUMBER: Final = re.compile(rb"\s*([0-9]{1,18})\s*")


def named_halves(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield queue and offset of each half message that op records name; an op record of 5.x may name several.

    Args:
        batches: rows of ``proof_scan.SCHEMA``.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    for batch in batches:
        ops = batch.filter(pc.fill_null(pc.equal(batch.column("topic"), TRANS_OP_HALF_TOPIC), False))
        bodies, queue_ids = ops.column("body").to_pylist(), ops.column("queueId").to_pylist()
        named = [
            (queue_id, int(match[1]))
            for body, queue_id in zip(bodies, queue_ids, strict=True)
            for piece in body.split(b",")
            if (match := _NUMBER.fullmatch(piece)) is not None
        ]
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([TRANS_HALF_TOPIC] * len(named), pa.string()),
                pa.array([queue_id for queue_id, _ in named], pa.int32()),
                pa.array([offset for _, offset in named], pa.int64()),
            ],
            ["topic", "queueId", "queueOffset"],
        )
