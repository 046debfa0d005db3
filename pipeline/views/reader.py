"""What the readers of all views share: stores looked at once, parts with a number, what they read counted."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql.datasource import DataSourceReader, InputPartition

from rewindmq.pipeline.counters import Counters, CountingFiles, write_counters
from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.files import open_files
from rewindmq.pipeline.options import ReadOptions
from rewindmq.pipeline.snapshot.snapshot import StoreSnapshot, labelled, take_snapshot

if TYPE_CHECKING:
    import pyarrow as pa


class Piece(NamedTuple):
    """A part of one store: of its log, or of one of its other files.

    Attributes:
        store: number of the store.
        source: number of the file among those of its kind: segments, queues' files, index files.
        start, stop: positions or numbers within it, whatever the view counts by.
    """

    store: int
    source: int
    start: int
    stop: int


class Part(InputPartition):
    """What one task reads."""

    def __init__(self, number: int, pieces: Sequence[Piece], planning: int = 0) -> None:
        """``planning`` is what had been read to plan the query; one part of a query tells of it."""
        super().__init__(number)
        self.number = number
        self.pieces = tuple(pieces)
        self.planning = planning


class StoreReader(DataSourceReader):
    """A reader of one view; a subclass says what the pieces are, and makes their rows.

    Spark copies it to the tasks before it asks for partitions: what planning finds out goes into pieces.
    """

    def __init__(self, options: ReadOptions, names: Sequence[str]) -> None:
        """
        Raises:
            PipelineError: a store that cannot be read.
        """
        self.options = options
        self.names = list(names)
        self._counting: list[CountingFiles] = []
        snapshots: list[StoreSnapshot] = []
        for location in options.locations:
            files = CountingFiles(open_files(location)[0])
            self._counting.append(files)
            snapshots.append(take_snapshot(location, files))
        self.snapshots = labelled(snapshots)

    def counted(self, files: CountingFiles) -> CountingFiles:
        """Let what is read from these files count, too."""
        self._counting.append(files)
        return files

    @abstractmethod
    def parts(self) -> Iterator[Sequence[Piece]]:
        """What to read, task by task."""

    @abstractmethod
    def rows(self, piece: Piece) -> Iterator[pa.RecordBatch]:
        """One piece's rows."""

    def partitions(self) -> Sequence[InputPartition]:
        try:
            parts = [Part(number, pieces) for number, pieces in enumerate(self.parts())]
        except OSError as error:
            raise PipelineError(_line(error)) from None
        # Without a part Spark would make one of its own.
        parts = parts or [Part(0, ())]
        parts[0].planning = self._bytes_read()
        return parts

    def _bytes_read(self) -> int:
        return sum(files.bytes_read for files in self._counting)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Part)
        before, records = self._bytes_read(), 0
        try:
            for piece in partition.pieces:
                for batch in self.rows(piece):
                    for start in range(0, batch.num_rows, self.options.batch_records):
                        piece_of_batch = batch.slice(start, self.options.batch_records)
                        records += piece_of_batch.num_rows
                        yield piece_of_batch
        except OSError as error:
            raise PipelineError(_line(error)) from None
        finally:
            if self.options.counters:
                read = self._bytes_read() - before + partition.planning
                found = Counters(1, read, partition.planning, records, len(partition.pieces))
                write_counters(self.options.counters, partition.number, found)


def _line(error: OSError) -> str:
    name = error.filename or "the store"
    if isinstance(error, FileNotFoundError):
        return f"{name} was removed by the broker while it was to be read: start again"
    return f"cannot read {name}: {error.strerror or error}"


def packed(pieces: Iterator[tuple[Piece, int]], size: int, count: int = 1_000) -> Iterator[list[Piece]]:
    """Neighbouring pieces together, up to ``size`` bytes and ``count`` pieces in one part.

    Args:
        pieces: each with its bytes.
    """
    part: list[Piece] = []
    held = 0
    for piece, weight in pieces:
        if part and (held + weight > size or len(part) >= count):
            yield part
            part, held = [], 0
        part.append(piece)
        held += weight
    if part:
        yield part
