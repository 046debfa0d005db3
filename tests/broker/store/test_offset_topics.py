"""Which topics a group has offsets for, and which groups a topic, whatever happened to the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rewindmq.broker.store.tables.consumer_offset import ConsumerOffsetTable
from rewindmq.protocol.remoting.slices import run_at_once
from rewindmq.race.sim.disk import SimDisk

GROUPS = st.sampled_from(["G", "H", "I@J", ""])
TOPICS = st.sampled_from(["T", "U", "V@W"])
KEYS = st.sampled_from(["T@G", "U@G", "T@H", "odd", "T@G@H"])
STEPS = st.one_of(
    st.tuples(st.just("commit"), GROUPS, TOPICS),
    st.tuples(st.just("replace"), GROUPS, st.dictionaries(TOPICS, st.just({0: 1}), max_size=2)),
    st.tuples(st.just("remove_group"), GROUPS, st.none()),
    st.tuples(st.just("reset"), GROUPS, TOPICS),
    st.tuples(st.just("take_over"), st.dictionaries(KEYS, st.just({0: 2}), max_size=3), st.none()),
    st.tuples(st.just("load"), st.none(), st.none()),
)


@settings(derandomize=True, deadline=None)
@given(st.lists(STEPS, max_size=12))
def test_topics_and_groups_agree_with_the_offsets(steps: list[tuple[str, Any, Any]]) -> None:
    disk = SimDisk(lambda: 0)
    table = ConsumerOffsetTable(Path("/store/consumerOffset.json"), disk)
    for step, first, second in steps:
        if step == "commit":
            table.commit(first, second, 0, 5)
        elif step == "replace":
            table.replace(first, second)
        elif step == "remove_group":
            table.remove_group(first)
        elif step == "reset":
            table.take_reset(first, second, {0: 3})
            table.reset(first, second, {0: 3})
        elif step == "take_over":
            table.take_over(first, {})
        else:
            table.commit("K", "L", 0, 1)
            table.persist()
            table = ConsumerOffsetTable(Path("/store/consumerOffset.json"), disk)
            table.load()
        check(table)


def check(table: ConsumerOffsetTable) -> None:
    offsets, _ = run_at_once(table.copy_in_slices())
    pairs = [tuple(key.split("@")) for key in offsets if key.count("@") == 1]
    for group in ("G", "H", "K", "I@J", "J", ""):
        assert sorted(table.topics_of(group)) == sorted(topic for topic, owner in pairs if owner == group)
    for topic in ("T", "U", "L", "V@W", "W"):
        assert sorted(table.groups_of(topic)) == sorted(owner for name, owner in pairs if name == topic)
