"""brokerStatus prints the runtime statistics as mqadmin does."""

from __future__ import annotations

from rewindmq.protocol.remoting.stalls.record import Stalls
from tests.support.fixtures import played
from tests.support.stage import SimStage


@played(brokers=2)
async def test_it_addresses_one_broker_or_all_masters(stage: SimStage) -> None:
    first, second = (broker.address for broker in stage.brokers.values())
    lines = await stage.run(f"brokerStatus -b {first}")
    assert f"{'brokerVersionDesc':<32}: V4_9_4" in lines
    assert lines == sorted(lines)
    lines = await stage.run("brokerStatus -c DefaultCluster")
    for address in (first, second):
        assert f"{address:<24} {'brokerVersionDesc':<32}: V4_9_4" in lines


@played(brokers=0)
async def test_it_shows_what_held_the_event_loop_longest(stage: SimStage) -> None:
    clock = stage.runtime.clock
    stalls = stage.stalls = Stalls(clock.monotonic, clock.now_ms, clock.scale)
    await stage.start_broker()
    lines = await stage.run(f"brokerStatus -b {stage.broker.address}")
    assert f"{'eventLoopWorstStallMs':<32}: 0" in lines
    at_ms = clock.now_ms()
    stalls.passed(clock.monotonic() - 0.0634, 11, "10.0.0.9:5")
    lines = await stage.run(f"brokerStatus -b {stage.broker.address}")
    assert [line for line in lines if line.startswith("eventLoop")] == [
        f"{'eventLoopStallCount':<32}: 1",
        f"{'eventLoopWorstStallMs':<32}: 63.4",
        f"{'eventLoopWorstStallRequest':<32}: PULL_MESSAGE (11) from 10.0.0.9:5",
        f"{'eventLoopWorstStallTimestamp':<32}: {at_ms}",
    ]
