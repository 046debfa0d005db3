"""Damage is reported once, with its place; every undamaged record is read."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.pipeline.direct import rows
from tests.pipeline.records import plain, write_log

SEGMENT = 1_024
COLUMNS = ["physicalOffset", "storeSize", "body", "crcOk"]
Placed = list[tuple[int, bytes]]


def overwrite(store: Path, position: int, data: bytes, segment_bytes: int = SEGMENT) -> None:
    base = position // segment_bytes * segment_bytes
    with (store / "commitlog" / f"{base:020d}").open("r+b") as file:
        file.seek(position - base)
        file.write(data)


def damages(store: Path, **options: str) -> list[tuple[str, int, int]]:
    found = rows(store, "damage", options=options)
    assert all(row["store"] == store.name and row["detail"] for row in found)
    assert all(row["segment"] <= row["start"] < row["end"] for row in found)
    return sorted((row["kind"], row["start"], row["end"]) for row in found)


def positions(store: Path, **options: str) -> list[int]:
    return [row["physicalOffset"] for row in rows(store, columns=["physicalOffset"], options=options)]


def log_of(store: Path, count: int = 12, size: int = 150) -> Placed:
    return write_log(store, [plain(bytes([number + 1]) * size) for number in range(count)], SEGMENT)


@pytest.mark.slow
def test_flipped_bytes_are_reported_or_do_no_harm(full: bool) -> None:
    check = given(
        st.lists(st.integers(0, 200), min_size=1, max_size=10),
        st.integers(0, 4 * SEGMENT),
        st.integers(1, 255),
        st.integers(1, 3),
        st.integers(60, 2_000),
    )(flip_and_read)
    settings(max_examples=1_000 if full else 60, deadline=None, derandomize=True)(check)()


def flip_and_read(sizes: list[int], at: int, mask: int, width: int, split: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        placed = write_log(
            store, [plain(bytes([number + 1]) * size) for number, size in enumerate(sizes)], SEGMENT
        )
        end = placed[-1][0] // SEGMENT * SEGMENT + SEGMENT
        at %= end
        width = min(width, SEGMENT - at % SEGMENT)
        segment = store / "commitlog" / f"{at // SEGMENT * SEGMENT:020d}"
        before = segment.read_bytes()[at % SEGMENT :][:width]
        overwrite(store, at, bytes(byte ^ mask for byte in before))
        found = {row["physicalOffset"]: row for row in rows(store, columns=COLUMNS, splitBytes=str(split))}
        told = damages(store, splitBytes=str(split))
    for position, record in placed:
        is_touched = position < at + width and at < position + len(record)
        row = found.get(position)
        if not is_touched:
            assert row is not None
            assert row["crcOk"]
            assert row["storeSize"] == len(record)
        elif row is None or not row["crcOk"]:
            assert any(start <= position < stop for _, start, stop in told)
    for (_, _, stop), (_, start, _) in zip(
        sorted(told, key=lambda place: place[1]), sorted(told, key=lambda place: place[1])[1:], strict=False
    ):
        assert stop <= start


def test_a_wrong_body_is_a_row_with_its_position_and_the_message_is_given_all_the_same(
    tmp_path: Path,
) -> None:
    placed = log_of(tmp_path / "store")
    position, record = placed[3]
    overwrite(tmp_path / "store", position + 100, b"\xff")
    assert damages(tmp_path / "store") == [("bad CRC", position, position + len(record))]
    found = rows(tmp_path / "store", columns=["physicalOffset", "crcOk"])
    assert [row["physicalOffset"] for row in found if not row["crcOk"]] == [position]
    assert len(found) == len(placed)


def test_a_hole_is_reported_once_wherever_the_log_is_split(tmp_path: Path) -> None:
    placed = log_of(tmp_path / "store")
    (start, _), (end, _) = placed[1], placed[3]
    overwrite(tmp_path / "store", start, b"\x11" * (end - start))
    for split in (*range(240, 262, 3), 50, 1_000, 1_000_000):
        assert damages(tmp_path / "store", splitBytes=str(split)) == [("hole", start, end)]
        assert positions(tmp_path / "store", splitBytes=str(split)) == [
            position for position, _ in (placed[0], *placed[3:])
        ]


def test_a_segment_of_zeros_between_others_is_a_hole(tmp_path: Path) -> None:
    placed = log_of(tmp_path / "store")
    overwrite(tmp_path / "store", SEGMENT, bytes(SEGMENT))
    assert damages(tmp_path / "store", splitBytes="100") == [("hole", SEGMENT, 2 * SEGMENT)]
    assert positions(tmp_path / "store") == [
        position for position, _ in placed if not SEGMENT <= position < 2 * SEGMENT
    ]


def test_segments_allocated_ahead_are_no_damage(tmp_path: Path) -> None:
    placed = log_of(tmp_path / "store")
    last = max(int(path.name) for path in (tmp_path / "store" / "commitlog").iterdir())
    for ahead in (1, 2):
        (tmp_path / "store" / "commitlog" / f"{last + ahead * SEGMENT:020d}").write_bytes(bytes(SEGMENT))
    assert damages(tmp_path / "store") == []
    assert positions(tmp_path / "store") == [position for position, _ in placed]


def test_bytes_after_a_blank_record_are_ignored(tmp_path: Path) -> None:
    placed = log_of(tmp_path / "store")
    overwrite(tmp_path / "store", SEGMENT - 20, b"old bytes")
    assert damages(tmp_path / "store") == []
    assert positions(tmp_path / "store") == [position for position, _ in placed]


def test_a_blank_record_that_hides_records_is_a_hole(tmp_path: Path) -> None:
    placed = log_of(tmp_path / "store")
    (start, _), (end, _) = placed[1], placed[2]
    overwrite(tmp_path / "store", start, b"\x00\x00\x00\x10\xcb\xd4\x31\x94")
    assert damages(tmp_path / "store") == [("hole", start, end)]
    assert len(positions(tmp_path / "store")) == len(placed) - 1


def test_a_record_that_lies_about_its_size_takes_no_other_with_it(tmp_path: Path) -> None:
    placed = log_of(tmp_path / "store")
    (start, record), (end, _) = placed[1], placed[2]
    for size in (-1, 0, 91, len(record) - 1, len(record) + 1, 2 * len(record), 1 << 20, 0x7FFF_FFFF):
        overwrite(tmp_path / "store", start, size.to_bytes(4, "big", signed=True))
        assert damages(tmp_path / "store") == [("hole", start, end)], size
        assert len(positions(tmp_path / "store")) == len(placed) - 1


def test_a_torn_last_record_is_reported_and_is_no_message(tmp_path: Path) -> None:
    placed = log_of(tmp_path / "store", count=9)
    position, record = placed[-1]
    rest = position // SEGMENT * SEGMENT + SEGMENT
    zeros = bytes(len(record))
    torn = {
        "only its head is there": (record[:20] + zeros[20:], rest),
        "its end is missing": (record[:120] + zeros[120:], rest),
        "a part of its body is missing": (
            record[:100] + zeros[100:130] + record[130:],
            position + len(record),
        ),
    }
    for name, (data, end) in torn.items():
        overwrite(tmp_path / "store", position, data)
        assert damages(tmp_path / "store") == [("torn tail", position, end)], name
        assert positions(tmp_path / "store") == [position for position, _ in placed[:-1]], name
