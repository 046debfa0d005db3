"""The view damage: one row per damaged place of a log. Reads everything and computes every CRC."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rewindmq.pipeline.decode.damage import Damage, DamageKind
from rewindmq.pipeline.decode.record_block import RecordBlock
from rewindmq.pipeline.decode.segment_reader import SegmentReader
from rewindmq.pipeline.views.messages import log_pieces
from rewindmq.pipeline.views.reader import StorePiece, StoreReader, packed

if TYPE_CHECKING:
    import pyarrow as pa

_TAIL = -1


class DamageReader(StoreReader):
    """Reads the whole log and yields a row per damaged place."""

    def parts(self) -> Iterator[Sequence[StorePiece]]:
        size = self.options.split_bytes
        for number, snapshot in enumerate(self.snapshots):
            ranges = [(snapshot.begin, snapshot.end)]
            yield from packed(log_pieces(number, snapshot, ranges, size), size)
            if snapshot.torn is not None:
                yield [StorePiece(number, _TAIL, 0, 0)]

    def rows(self, piece: StorePiece) -> Iterator[pa.RecordBatch]:
        snapshot = self.snapshots[piece.store]
        if piece.source == _TAIL:
            assert snapshot.torn is not None
            yield self._batch(snapshot.name, [snapshot.torn])
            return
        segment = snapshot.segments[piece.source]
        told: list[Damage] = []
        reader = SegmentReader(snapshot.files, segment, told.append)
        for block in reader.blocks(piece.start, piece.stop):
            told += wrong_sums(block, segment.base)
            if told:
                yield self._batch(snapshot.name, sorted(told, key=lambda damage: damage.start))
                told.clear()
        if told:
            yield self._batch(snapshot.name, told)

    def _batch(self, store: str, damages: Sequence[Damage]) -> pa.RecordBatch:
        import pyarrow as pa

        columns = {
            "store": pa.array([store] * len(damages), pa.string()),
            "segment": pa.array([damage.segment for damage in damages], pa.int64()),
            "kind": pa.array([str(damage.kind) for damage in damages], pa.string()),
            "start": pa.array([damage.start for damage in damages], pa.int64()),
            "end": pa.array([damage.end for damage in damages], pa.int64()),
            "detail": pa.array([damage.detail for damage in damages], pa.string()),
        }
        return pa.RecordBatch.from_arrays([columns[name] for name in self.names], self.names)


def wrong_sums(block: RecordBlock, segment: int) -> Iterator[Damage]:
    """Yield the records whose bodies do not match their CRC."""
    wrong = block.select(~block.crc_ok)
    starts, ends = wrong.base + wrong.at, wrong.base + wrong.end
    for start, end, stated in zip(
        starts.tolist(), ends.tolist(), wrong.head["body_crc"].tolist(), strict=True
    ):
        detail = f"the body does not match the CRC {stated} that its record states"
        yield Damage(DamageKind.BAD_CRC, segment, start, end, detail)
