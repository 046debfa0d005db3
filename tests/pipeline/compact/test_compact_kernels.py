"""The parts of a compaction that need no Spark, each against a plain loop."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewindmq.pipeline.compact import writer
from rewindmq.pipeline.compact.layout import Cursor, FileShape, Stream
from rewindmq.pipeline.compact.numbering import check_numbers
from rewindmq.pipeline.compact.survivors import QueueTotals
from rewindmq.pipeline.compact.topics import Treatment, choose_topics
from rewindmq.pipeline.compact.translate import make_translation, marked_topics, offsets_of
from rewindmq.pipeline.compact.writer import read_pieces
from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.files import LocalFiles

BLANK_BYTES = 8


def plain_positions(sizes: list[int], shape: FileShape) -> list[int]:
    """Place records as a broker does: in the next file if a record and a blank record do not fit."""
    positions, position, records = [], 0, 0
    for size in sizes:
        if shape.bytes - position % shape.bytes < size + BLANK_BYTES or records == shape.records:
            position += shape.bytes - position % shape.bytes
            records = 0
        positions.append(position)
        position += size
        records += 1
    return positions


@given(
    batches=st.lists(st.lists(st.integers(91, 392), max_size=12), max_size=8),
    records=st.integers(1, 9),
)
@settings(deadline=None, derandomize=True)
def test_records_are_placed_as_one_append_after_the_other_would(
    batches: list[list[int]], records: int
) -> None:
    shape = FileShape(400, records)
    cursor = Cursor(shape)
    found = [place for batch in batches for place in cursor.place(np.asarray(batch, np.int64)).tolist()]
    assert found == plain_positions([size for batch in batches for size in batch], shape)


def test_a_record_fills_a_file_up_to_its_blank_record_and_no_further() -> None:
    cursor = Cursor(FileShape(400, 10))
    assert cursor.place(np.asarray([392, 100, 292, 100])).tolist() == [0, 400, 500, 800]
    with pytest.raises(PipelineError, match="393 bytes does not fit into a file of 400"):
        Cursor(FileShape(400, 10)).place(np.asarray([393]))


@given(data=st.data())
@settings(deadline=None, derandomize=True, max_examples=40)
def test_pieces_are_read_whatever_lies_between_them(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    gaps = data.draw(st.lists(st.integers(0, 40), min_size=1, max_size=30))
    sizes = data.draw(st.lists(st.integers(1, 30), min_size=len(gaps), max_size=len(gaps)))
    at = np.cumsum(np.asarray(gaps) + np.asarray([0, *sizes[:-1]]))
    content = bytes(number * 7 % 251 for number in range(int(at[-1]) + sizes[-1] + 5))
    path = tmp_path_factory.mktemp("pieces") / "file"
    path.write_bytes(content)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(writer, "_LOCAL_GAP", 10)
        patched.setattr(writer, "_CHUNK_BYTES", 64)
        found = read_pieces(LocalFiles(), str(path), at, np.asarray(sizes))
    wanted = [content[start : start + size] for start, size in zip(at.tolist(), sizes, strict=True)]
    assert found == b"".join(wanted)


def test_a_file_that_was_cut_gives_fewer_bytes(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(100))
    at, sizes = np.asarray([0, 50, 90]), np.asarray([10, 10, 20])
    assert len(read_pieces(LocalFiles(), str(tmp_path / "file"), at, sizes)) != 40


def test_a_position_means_the_same_message_afterwards() -> None:
    to_new = make_translation({("T", 0, 0): 0, ("T", 0, 7): 3, ("T", 0, 12): 4}, {("T", 0): 10})
    assert [to_new("T", 0, offset) for offset in (-1, 0, 7)] == [-1, 0, 3]
    # Two beyond the end, and a queue of which nothing is left.
    assert (to_new("T", 0, 12), to_new("T", 1, 500)) == (6, 0)


def totals(kind: Treatment, *, newest: int, last: int, lowest: int, newest_at: int) -> QueueTotals:
    """Messages of one kind in queue 0 of T: offsets up to ``newest``, which is at position ``newest_at``."""
    return QueueTotals("T", 0, kind, 1, 0, 1, newest, 1_700_000_000_000, last, lowest, newest_at)


def test_a_queue_that_restarts_at_0_is_refused_in_one_log_and_between_two_runs() -> None:
    keyed = totals(Treatment.KEYED, newest=9, last=900, lowest=5, newest_at=900)
    check_numbers([keyed], {})
    check_numbers([keyed], {("T", 0): 5, ("U", 0): 99})
    check_numbers([keyed, totals(Treatment.DAMAGED, newest=7, last=700, lowest=7, newest_at=700)], {})
    refused = "queue 0 of T restarts its numbering at or before log position 900"
    with pytest.raises(PipelineError, match=refused):
        check_numbers([keyed], {("T", 0): 6})
    with pytest.raises(PipelineError, match=refused):
        check_numbers([keyed._replace(newest_at=300)], {})
    with pytest.raises(PipelineError, match=refused):
        check_numbers([keyed, totals(Treatment.KEYLESS, newest=20, last=100, lowest=20, newest_at=100)], {})


def test_a_topic_is_compacted_if_it_was_named_or_marked_or_if_none_is() -> None:
    marked = {"topicConfigTable": {"A": {"attributes": {"cleanup.policy": "COMPACTION"}}, "B": {}}}
    plain = {"topicConfigTable": {"B": {"attributes": {"cleanup.policy": "DELETE"}}}}
    assert choose_topics((), [marked, plain], {"A", "B"}) == frozenset({"A"})
    assert choose_topics((), [plain], {"B"}) is None
    assert choose_topics(("B",), [marked], {"A", "B"}) == frozenset({"B"})
    # A log without queues gives no size in advance.
    assert choose_topics(("C",), [{}], set()) == frozenset({"C"})


def test_configuration_of_a_compaction_store() -> None:
    table = {"A": {"perm": 4, "attributes": {"x": "y"}}}
    after = marked_topics({"topicConfigTable": table, "dataVersion": {"counter": 1}}, {"A": 1, "New": 3})
    assert after["topicConfigTable"]["A"] == {
        "perm": 4,
        "attributes": {"x": "y", "cleanup.policy": "COMPACTION"},
    }
    assert after["topicConfigTable"]["New"]["writeQueueNums"] == 3
    assert table == {"A": {"perm": 4, "attributes": {"x": "y"}}}
    offsets = {"offsetTable": {"A@G": {"0": 1}, "%RETRY%G@G": {"0": 7}}, "dataVersion": {"counter": 2}}
    assert offsets_of(offsets, ["A"]) == {"offsetTable": {"A@G": {"0": 1}}, "dataVersion": {"counter": 2}}


@pytest.mark.parametrize("topic", ["../../../x", "..", "a/b", "/etc", "a\0b", "", "x" * 256])
def test_a_queue_that_would_lie_outside_the_output_is_refused(topic: str) -> None:
    for path in (writer.log_path, writer.cq_path):
        with pytest.raises(PipelineError, match="cannot be a folder"):
            path("/out", Stream(topic, 0), 0)


def test_the_place_of_a_queue_is_below_the_output() -> None:
    assert writer.log_path("/out", Stream("%RETRY%G", 3), 0).startswith("/out/compaction/")
