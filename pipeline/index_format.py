"""Header and entries of a key index file as jobs read and write them (docs/spec/store.md 5)."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from rewindmq.broker.store.index_layout import HEADER, HEADER_BYTES
from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.files import ReadableFiles

# Many of index_layout.ENTRY: time_diff in seconds, previous is an entry's number.
ENTRIES: Final = np.dtype(
    [("key_hash", ">i4"), ("position", ">i8"), ("time_diff", ">i4"), ("previous", ">i4")]
)


class IndexHeader(NamedTuple):
    """The first 40 bytes. Times are ms; ``index_count`` is the number of the next entry."""

    begin_timestamp: int
    end_timestamp: int
    begin_phy_offset: int
    end_phy_offset: int
    hash_slot_count: int
    index_count: int


def read_header(files: ReadableFiles, path: str) -> IndexHeader:
    """The header of an index file.

    Raises:
        PipelineError: the file is too short for one.
    """
    data = files.read(path, 0, HEADER_BYTES)
    if len(data) < HEADER_BYTES:
        raise PipelineError(f"{path} is too short for an index file: {len(data)} bytes")
    return IndexHeader(*HEADER.unpack(data))
