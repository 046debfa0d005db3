"""Builds a compaction's summary from the findings of its steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rewindmq.pipeline.compact.options import (
    CompactOptions,
    CompactSummary,
    DamagedPlace,
    Scope,
    TopicCounts,
)
from rewindmq.pipeline.compact.store_run import StoreTask, totals_of
from rewindmq.pipeline.compact.survivors import QueueTotals
from rewindmq.pipeline.compact.topics import Treatment
from rewindmq.pipeline.snapshot.snapshot import StoreSnapshot

_NONE_KEPT: Final = (0,) * 6

Pairs = Sequence[tuple[StoreTask, Mapping[str, Any]]]


def summarize(output: str, options: CompactOptions, generation: int, stores: Pairs) -> CompactSummary:
    """Return the summary of all stores."""
    totals = [total for _, facts in stores for total in totals_of(facts)]
    counts = [count for _, facts in stores for count in facts["counts"].values()]
    return CompactSummary(
        output=output,
        format=options.format,
        scope=options.scope,
        is_new=True,
        generation=generation,
        messages_read=sum(total.messages for total in totals),
        messages_kept=sum(count[0] for count in counts),
        bytes_kept=sum(count[1] for count in counts),
        keyless_dropped=sum(total.messages for total in totals if total.kind is Treatment.KEYLESS),
        files_written=sum(facts["filesWritten"] for _, facts in stores),
        files_linked=sum(facts["filesLinked"] for _, facts in stores),
        damage_count=sum(facts["damageCount"] + len(_torn_tail(task.snapshot)) for task, facts in stores),
        topics=_count_topics(stores, options.scope),
        damage=_damage(stores),
    )


def _count_topics(stores: Pairs, scope: Scope) -> tuple[TopicCounts, ...]:
    """Return the counts of each compacted topic, over all stores."""
    sums: dict[str, TopicCounts] = {}
    for task, facts in stores:
        totals = totals_of(facts)
        for topic in {total.topic for total in totals if task.rules.is_compacted(total.topic)}:
            of_topic = [total for total in totals if total.topic == topic]
            keys = facts["keys"].get(topic, 0) if scope is Scope.TOPIC else None
            found = _count_topic(topic, of_topic, facts["counts"].get(topic, _NONE_KEPT), keys)
            sums[topic] = _add(sums[topic], found) if topic in sums else found
    return tuple(sums[topic] for topic in sorted(sums))


def _damage(stores: Pairs) -> tuple[DamagedPlace, ...]:
    """Return damaged places: the first of each store, its torn tail before the others."""
    return tuple(
        place
        for task, facts in stores
        for place in (
            *_torn_tail(task.snapshot),
            *(
                DamagedPlace(store=task.snapshot.location, kind=kind, start=start, end=end, detail=detail)
                for kind, start, end, detail in facts["damage"]
            ),
        )
    )


def _torn_tail(snapshot: StoreSnapshot) -> tuple[DamagedPlace, ...]:
    place = snapshot.torn
    if place is None:
        return ()
    kind = str(place.kind)
    return (
        DamagedPlace(
            store=snapshot.location, kind=kind, start=place.start, end=place.end, detail=place.detail
        ),
    )


def _count_topic(
    topic: str, totals: list[QueueTotals], counts: Sequence[int], keys: int | None
) -> TopicCounts:
    """``keys``: number of keys over all queues; None to count each queue's keys separately."""
    keyed = [total for total in totals if total.kind is Treatment.KEYED]
    kept, _, kept_keyed, tombstones, keyless, ends = counts
    newest = sum(total.groups for total in keyed) if keys is None else keys
    considered = sum(total.messages + total.carried for total in keyed)
    return TopicCounts(
        topic=topic,
        read=sum(
            total.messages for total in totals if total.kind not in (Treatment.OUTSIDE, Treatment.DAMAGED)
        ),
        kept=kept,
        superseded=considered - newest,
        tombstones_dropped=newest - kept_keyed,
        tombstones_kept=tombstones,
        keyless_dropped=sum(total.messages for total in totals if total.kind is Treatment.KEYLESS),
        keyless_kept=keyless,
        ends_kept=ends,
    )


def _add(one: TopicCounts, other: TopicCounts) -> TopicCounts:
    names = [name for name in TopicCounts.__struct_fields__ if name != "topic"]
    sums = {name: getattr(one, name) + getattr(other, name) for name in names}
    return TopicCounts(topic=one.topic, **sums)
