"""The view open_timers: one row per timer message that waits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from rewindmq.pipeline.decode.message_columns import timestamps
from rewindmq.pipeline.views.reader import StorePiece
from rewindmq.pipeline.views.timer_records import OpenTimers, TimerRecordReader, whole_numbers
from rewindmq.protocol.message.properties import TIMER_DEL_UNIQKEY, TIMER_ROLL_TIMES

if TYPE_CHECKING:
    import pyarrow as pa

    from rewindmq.pipeline.decode.message_columns import MessageColumns
    from rewindmq.pipeline.decode.record_block import Int64s

_INT32_MAX: Final = 0x7FFF_FFFF
# Columns that the view messages has, too; ``topic`` and ``queueId`` have other names there.
_MESSAGE_COLUMNS: Final = {"topic": "realTopic", "timerQueueOffset": "queueOffset"}
# Delivery times and keys of messages that are deleted, as the messages that delete them name them.
_Deletions = set[tuple[int, str]]


class OpenTimersReader(TimerRecordReader):
    """Reads rows of the timer messages that wait.

    A message that deletes another is no row. It deletes the message of the same second that has its key: the
    unique key, or ``topic+key`` with ``appendTopicForTimerDeleteKey=true`` (docs/spec/timers.md 6).
    """

    def rows(self, piece: StorePiece) -> Iterator[pa.RecordBatch]:
        import pyarrow.compute as pc

        timers = self.open_timers(piece.store)
        deletions = self._deletions(piece.store, timers) if "recalled" in self.names else set()
        for columns, out_ms in self.columns_of(piece.store, timers, timers.positions):
            batch = self._batch(columns, out_ms, deletions)
            yield batch.filter(pc.is_null(columns.properties.column(TIMER_DEL_UNIQKEY)))

    def _deletions(self, store: int, timers: OpenTimers) -> _Deletions:
        found: _Deletions = set()
        for columns, out_ms in self.columns_of(store, timers, timers.deletes):
            keys = columns.properties.column(TIMER_DEL_UNIQKEY).to_pylist()
            found.update((time, key) for time, key in zip(out_ms.tolist(), keys, strict=True) if key)
        return found

    def _batch(self, columns: MessageColumns, out_ms: Int64s, deletions: _Deletions) -> pa.RecordBatch:
        import pyarrow as pa

        found = [self._column(name, columns, out_ms, deletions) for name in self.names]
        return pa.RecordBatch.from_arrays(found, self.names)

    def _column(self, name: str, columns: MessageColumns, out_ms: Int64s, deletions: _Deletions) -> pa.Array:
        import pyarrow as pa

        match name:
            case "queueId":
                numbers = whole_numbers(columns.column("realQueueId"))
                is_none = (numbers < 0) | (numbers > _INT32_MAX)
                return pa.array(np.where(is_none, 0, numbers).astype(np.int32), mask=is_none)
            case "dueTimestamp":
                return timestamps(out_ms)
            case "dueTimestampMs":
                return pa.array(out_ms)
            case "rolls":
                rolls = whole_numbers(columns.properties.column(TIMER_ROLL_TIMES))
                return pa.array(np.clip(rolls, 0, _INT32_MAX).astype(np.int32))
            case "recalled":
                return _recalled(columns, out_ms, deletions)
            case _:
                return columns.column(_MESSAGE_COLUMNS.get(name, name))


def _recalled(columns: MessageColumns, out_ms: Int64s, deletions: _Deletions) -> pa.Array:
    import pyarrow as pa

    if not deletions:
        return pa.array(np.zeros(len(out_ms), np.bool_))
    keys, topics = columns.column("uniqueKey").to_pylist(), columns.column("realTopic").to_pylist()
    return pa.array(
        [
            key is not None and ((time, key) in deletions or (time, f"{topic}+{key}") in deletions)
            for time, key, topic in zip(out_ms.tolist(), keys, topics, strict=True)
        ],
        pa.bool_(),
    )
