"""Base class of the views' readers: opens stores, numbers parts and counts what tasks read."""

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


class StorePiece(NamedTuple):
    """A part of one store: of its log, or of one of its other files.

    Attributes:
        store: index of the store.
        source: index of the file among files of its kind: segments, queue files, index files.
        start, stop: positions or numbers within the file, in the view's own unit.
    """

    store: int
    source: int
    start: int
    stop: int


class ViewPart(InputPartition):
    """The work of one task."""

    def __init__(self, number: int, pieces: Sequence[StorePiece], planning: int = 0) -> None:
        """``planning``: bytes read to plan the query; one part of each query reports them."""
        super().__init__(number)
        self.number = number
        self.pieces = tuple(pieces)
        self.planning = planning


class StoreReader(DataSourceReader):
    """Reader of one view; a subclass defines the pieces and reads their rows.

    Spark copies the reader to the tasks before it asks for partitions, so results of planning go into pieces.
    """

    def __init__(self, options: ReadOptions, names: Sequence[str]) -> None:
        """
        Raises:
            PipelineError: a store cannot be read.
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
        """Include the bytes read from these files in the counters."""
        self._counting.append(files)
        return files

    @abstractmethod
    def parts(self) -> Iterator[Sequence[StorePiece]]:
        """Yield the pieces that each task reads."""

    @abstractmethod
    def rows(self, piece: StorePiece) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one piece."""

    def partitions(self) -> Sequence[InputPartition]:
        try:
            parts = [ViewPart(number, pieces) for number, pieces in enumerate(self.parts())]
        except OSError as error:
            raise PipelineError(error_line(error)) from None
        # Without a part, Spark would make a part itself.
        parts = parts or [ViewPart(0, ())]
        parts[0].planning = self._bytes_read()
        return parts

    def _bytes_read(self) -> int:
        return sum(files.bytes_read for files in self._counting)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, ViewPart)
        before, records = self._bytes_read(), 0
        try:
            for piece in partition.pieces:
                for batch in self.rows(piece):
                    for start in range(0, batch.num_rows, self.options.batch_records):
                        piece_of_batch = batch.slice(start, self.options.batch_records)
                        records += piece_of_batch.num_rows
                        yield piece_of_batch
        except OSError as error:
            raise PipelineError(error_line(error)) from None
        finally:
            if self.options.counters:
                read = self._bytes_read() - before + partition.planning
                found = Counters(1, read, partition.planning, records, len(partition.pieces))
                write_counters(self.options.counters, partition.number, found)


def error_line(error: OSError) -> str:
    """Return what the user is told if a file cannot be read during a query."""
    name = error.filename or "the store"
    if isinstance(error, FileNotFoundError):
        return f"the broker removed {name} during the query: start again"
    return f"cannot read {name}: {error.strerror or error}"


def packed(
    pieces: Iterator[tuple[StorePiece, int]], size: int, count: int = 1_000
) -> Iterator[list[StorePiece]]:
    """Group neighbouring pieces into parts of up to ``size`` bytes and ``count`` pieces.

    Args:
        pieces: each piece with its number of bytes.
    """
    part: list[StorePiece] = []
    total = 0
    for piece, weight in pieces:
        if part and (total + weight > size or len(part) >= count):
            yield part
            part, total = [], 0
        part.append(piece)
        total += weight
    if part:
        yield part
