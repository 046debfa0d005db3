"""Whatever the bytes of a segment are, its scan reads each of them a bounded number of times."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from rewindmq.pipeline.decode.damage import Damage
from rewindmq.pipeline.decode.segment_reader import Segment, SegmentReader
from rewindmq.pipeline.files import FileEntry
from rewindmq.pipeline.snapshot.log_end import cut_behind_last_record
from rewindmq.protocol.message.record import MAGIC_V1, PHYSICAL_OFFSET_AT
from tests.pipeline.records import plain

SMALL, LARGE = 32 << 10, 128 << 10
CHUNK = 1 << 20
RECORD = plain(b"x" * 20)
# Bytes read per byte of the segment, and reads per byte: a candidate every few bytes, a short read for each.
MOST_BYTES = 400.0
MOST_READS = 0.5


@dataclass
class CountedFiles:
    """One file in memory, and what is read of it."""

    content: bytes
    bytes_read: int = 0
    reads: int = 0

    def list(self, folder: str) -> list[FileEntry]:
        raise NotImplementedError

    def entry(self, path: str) -> FileEntry | None:
        raise NotImplementedError

    def read_all(self, path: str) -> bytes | None:
        raise NotImplementedError

    def read(self, path: str, offset: int, length: int) -> bytes:
        data = self.content[offset : offset + length]
        self.bytes_read += len(data)
        self.reads += 1
        return data

    def data_range(self, path: str, offset: int) -> tuple[int, int] | None:
        return (offset, len(self.content)) if offset < len(self.content) else None


def magic_numbers(size: int) -> bytes:
    return struct.pack(">I", MAGIC_V1) * (size // 4)


def heads_of_huge_records(size: int) -> bytes:
    """At every place a size that the rest of the segment holds."""
    return struct.pack(">iI", SMALL // 2, MAGIC_V1) * (size // 8)


def heads_at_their_own_position(size: int) -> bytes:
    """Each states its own log position, a large size, and lengths that do not add up."""
    content = bytearray(size)
    for at in range(0, size - 64, 40):
        struct.pack_into(">iI", content, at, 3 * SMALL // 4, MAGIC_V1)
        struct.pack_into(">q", content, at + PHYSICAL_OFFSET_AT, at)
    return bytes(content)


def good_and_bad_records(size: int) -> bytes:
    """Every second record states another position; sizes lead from record to record."""
    content = bytearray()
    while len(content) < size - 300:
        for is_good in (True, False):
            content += RECORD.at(len(content) if is_good else 7)
    return bytes(content.ljust(size, b"\1"))


def records_before_huge_ones(size: int) -> bytes:
    """Every intact record is followed by a head that claims half of the segment."""
    content = bytearray()
    while len(content) < size - 300:
        content += RECORD.at(len(content))
        head = bytearray(48)
        struct.pack_into(">iI", head, 0, size // 2, MAGIC_V1)
        struct.pack_into(">q", head, PHYSICAL_OFFSET_AT, len(content))
        content += head
    return bytes(content.ljust(size, b"\1"))


CONTENTS = [
    magic_numbers,
    heads_of_huge_records,
    heads_at_their_own_position,
    good_and_bad_records,
    records_before_huge_ones,
]


def scan(content: bytes) -> tuple[CountedFiles, int, list[Damage]]:
    """Read a segment; return the reads, the number of records and the damage."""
    files = CountedFiles(content)
    told: list[Damage] = []
    reader = SegmentReader(files, Segment("", 0, len(content), len(content)), told.append, CHUNK)
    return files, sum(len(block) for block in reader.blocks(0, len(content))), told


def find_end(content: bytes) -> tuple[CountedFiles, int, list[Damage]]:
    """Find the log's end, as a snapshot does."""
    files = CountedFiles(content)
    _, torn = cut_behind_last_record(files, [Segment("", 0, len(content), len(content))])
    return files, 0, [] if torn is None else [torn]


@pytest.mark.slow
@pytest.mark.parametrize("work", [scan, find_end])
@pytest.mark.parametrize("made", CONTENTS)
def test_the_reads_of_a_scan_are_linear_in_the_segments_size(
    made: Callable[[int], bytes], work: Callable[[bytes], tuple[CountedFiles, int, list[Damage]]]
) -> None:
    small, large = work(made(SMALL))[0], work(made(LARGE))[0]
    growth = LARGE // SMALL
    assert large.bytes_read <= max(2 * growth * small.bytes_read, LARGE)
    assert large.reads <= max(2 * growth * small.reads, 100)
    assert large.bytes_read <= MOST_BYTES * LARGE
    assert large.reads <= MOST_READS * LARGE


@pytest.mark.parametrize("made", CONTENTS[3:])
def test_every_intact_record_between_damage_is_read(made: Callable[[int], bytes]) -> None:
    content = made(SMALL)
    _, count, told = scan(content)
    size = len(RECORD.at(0))
    intact = [at for at in range(len(content)) if content[at : at + size] == RECORD.at(at)]
    assert count == len(intact) > 100
    assert len(told) == count


def test_a_content_without_a_record_is_one_hole() -> None:
    for made in CONTENTS[:3]:
        content = made(SMALL)
        _, count, told = scan(content)
        assert count == 0
        assert [(damage.start, damage.end) for damage in told] == [(0, len(content))]
