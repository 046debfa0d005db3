"""A minimal Python data source: it returns a file's bytes to Spark, a block in each row."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK_BYTES = 1 << 20


class RawBlocks(DataSource):
    """Option ``parts``: JSON, a list of [path, position, length]; one task reads one."""

    @classmethod
    def name(cls) -> str:
        return "rawblocks"

    def schema(self) -> str:
        return "block binary"

    def reader(self, schema: StructType) -> DataSourceReader:
        return _BlockReader(json.loads(self.options["parts"]))


class _Part(InputPartition):
    def __init__(self, path: str, position: int, length: int) -> None:
        super().__init__((path, position))
        self.path = path
        self.position = position
        self.length = length


class _BlockReader(DataSourceReader):
    def __init__(self, parts: list[tuple[str, int, int]]) -> None:
        self._parts = parts

    def partitions(self) -> Sequence[InputPartition]:
        return [_Part(*part) for part in self._parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        assert isinstance(partition, _Part)
        with Path(partition.path).open("rb") as file:
            file.seek(partition.position)
            for at in range(0, partition.length, BLOCK_BYTES):
                block = pa.array([file.read(min(BLOCK_BYTES, partition.length - at))], pa.binary())
                yield pa.RecordBatch.from_arrays([block], ["block"])
