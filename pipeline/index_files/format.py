"""Header and entries of a key index file (docs/spec/store.md 5) as numpy types."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from rewindmq.broker.store.layout.index import HEADER, HEADER_BYTES
from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.files import ReadableFiles

# An array of index_layout.ENTRY: time_diff in seconds, previous is the number of an entry.
ENTRIES: Final = np.dtype(
    [("key_hash", ">i4"), ("position", ">i8"), ("time_diff", ">i4"), ("previous", ">i4")]
)


class IndexHeader(NamedTuple):
    """The first 40 bytes of the file. Times are ms; ``index_count`` is the number of the next entry."""

    begin_timestamp: int
    end_timestamp: int
    begin_phy_offset: int
    end_phy_offset: int
    hash_slot_count: int
    index_count: int


def read_header(files: ReadableFiles, path: str) -> IndexHeader:
    """Read the header of an index file.

    Raises:
        PipelineError: the file is too short.
    """
    data = files.read(path, 0, HEADER_BYTES)
    if len(data) < HEADER_BYTES:
        raise PipelineError(f"{path} is too short for an index file: {len(data)} bytes")
    return IndexHeader(*HEADER.unpack(data))
