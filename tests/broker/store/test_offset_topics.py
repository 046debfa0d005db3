"""Consumer offsets: the topics of a group, and what a write copies, whatever happened to the table."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewindmq.broker.store.errors import StoreError
from rewindmq.broker.store.tables import consumer_offset
from rewindmq.broker.store.tables.consumer_offset import ConsumerOffsetTable, OffsetChanges
from rewindmq.protocol.remoting.slices.run import run_at_once
from rewindmq.race.sim.disk import SimDisk
from tests.support.work import lines_run


class RefusingDisk(SimDisk):
    """Refuses to rename while told so."""

    refuses = False

    def replace(self, source: Path, target: Path) -> None:
        if self.refuses:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().replace(source, target)


GROUPS = st.sampled_from(["G", "H", "I@J", ""])
TOPICS = st.sampled_from(["T", "U", "V@W"])
KEYS = st.sampled_from(["T@G", "U@G", "T@H", "odd", "T@G@H"])
ONE = st.just({0: 1})
STEPS = st.one_of(
    st.tuples(st.just("commit"), GROUPS, TOPICS, st.booleans()),
    st.tuples(
        st.just("replace"), GROUPS, st.dictionaries(TOPICS, st.just({0: 1}), max_size=2), st.booleans()
    ),
    st.tuples(st.just("remove_group"), GROUPS, st.none(), st.booleans()),
    st.tuples(st.just("remove_topic"), TOPICS, st.none(), st.booleans()),
    st.tuples(st.just("reset"), GROUPS, TOPICS, st.booleans()),
    st.tuples(st.just("take_over"), st.dictionaries(KEYS, ONE, max_size=3), st.none(), st.booleans()),
    st.tuples(st.just("load"), st.none(), st.none(), st.booleans()),
)


@settings(derandomize=True, deadline=None)
@given(st.lists(STEPS, max_size=12))
def test_topics_and_groups_agree_with_the_offsets(steps: list[tuple[str, Any, Any, bool]]) -> None:
    disk = RefusingDisk(lambda: 0)
    table = ConsumerOffsetTable(Path("/store/consumerOffset.json"), disk)
    for step, first, second, third in steps:
        if step == "commit":
            table.commit(first, second, 0, 5)
            if third:
                table.persist()
        elif step == "replace":
            table.replace(first, second)
        elif step == "remove_group":
            table.remove_group(first)
        elif step == "remove_topic":
            run_at_once(table.remove_topic(first))
        elif step == "reset":
            changes = table.take_reset(first, second, {0: 3})
            if third:
                table.save(changes)
                table.reset(first, second, {0: 3})
            else:
                refuse(table, disk, changes)
        elif step == "take_over":
            table.take_over(first, {}, removes=third)
            assert not third or run_at_once(table.copy_in_slices())[0].keys() == first.keys()
        else:
            table.commit("K", "L", 0, 1)
            table.persist()
            before = run_at_once(table.copy_in_slices())
            table = ConsumerOffsetTable(Path("/store/consumerOffset.json"), disk)
            table.load()
            assert run_at_once(table.copy_in_slices()) == before
        check(table)


def refuse(table: ConsumerOffsetTable, disk: RefusingDisk, changes: OffsetChanges) -> None:
    """A write that the disk refuses is part of the next one."""
    disk.refuses = True
    with pytest.raises(StoreError):
        table.save(changes)
    disk.refuses = False


def test_what_is_copied_for_a_write_grows_with_the_changes_and_not_with_the_table() -> None:
    lines = []
    for count in (100, 5_000):
        table = ConsumerOffsetTable(Path("/store/consumerOffset.json"), SimDisk(lambda: 0))
        for number in range(count):
            table.commit(f"G{number}", "T", 0, 1)
        table.persist()
        for number in range(10):
            table.commit(f"G{number}", "T", 0, 2)
        lines.append(lines_run(table.take))
        table.commit("G1", "T", 0, 3)
        lines.append(lines_run(lambda: table.take_reset("G2", "T", {0: 7})))  # noqa: B023
    assert lines[:2] == lines[2:]


def test_very_many_changes_are_copied_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer_offset, "_CHANGES_PER_WRITE", 3)
    disk = SimDisk(lambda: 0)
    table = ConsumerOffsetTable(Path("/store/consumerOffset.json"), disk)
    for number in range(7):
        table.commit(f"G{number}", "T", 0, 1)
    parts = []
    while (changes := table.take()) is not None:
        parts.append((len(changes.offsets), table.has_more))
        table.save(changes)
    assert parts == [(3, True), (3, True), (1, False)]
    saved = ConsumerOffsetTable(Path("/store/consumerOffset.json"), disk)
    saved.load()
    assert run_at_once(saved.copy_in_slices()) == run_at_once(table.copy_in_slices())


def check(table: ConsumerOffsetTable) -> None:
    offsets, epochs = run_at_once(table.copy_in_slices())
    assert len(table) == sum(map(len, offsets.values()))
    assert epochs.keys() <= offsets.keys()
    pairs = [tuple(key.split("@")) for key in offsets if key.count("@") == 1]
    for group in ("G", "H", "K", "I@J", "J", ""):
        assert sorted(table.topics_of(group)) == sorted(topic for topic, owner in pairs if owner == group)
    for topic in ("T", "U", "L", "V@W", "W"):
        assert sorted(table.groups_of(topic)) == sorted(owner for name, owner in pairs if name == topic)
