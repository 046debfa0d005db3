"""UNIQ_KEY as Java makes it."""

from __future__ import annotations

from rewindmq.protocol.remoting.unique_id import UniqueIdGenerator
from rewindmq.race.sim import World


def test_unique_ids_have_javas_layout_and_differ() -> None:
    runtime = World().runtime()
    ids = [UniqueIdGenerator(runtime, "10.1.2.3").next() for _ in range(2)]
    generator = UniqueIdGenerator(runtime, "10.1.2.3")
    ids += [generator.next() for _ in range(1000)]
    assert len(set(ids)) == 1002
    assert all(len(text) == 32 and text.startswith("0A010203") and text == text.upper() for text in ids)
    # 14 November 2023, 22:13:20: 13 days, 22:13:20 into the month.
    assert int(ids[-1][20:28], 16) == ((13 * 24 + 22) * 3600 + 13 * 60 + 20) * 1000
    assert len(UniqueIdGenerator(runtime, "::1").next()) == 56
