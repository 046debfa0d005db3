"""A classic reset that is lost because one response is late, and a fenced reset that survives the same delay.

The classic reset is lost although every broker accepted it. RewindMQ's race laboratory calls this race R1.
"""

from __future__ import annotations

import pytest

from order_service import Ledger, Order, OrderListener
from rewindmq.testing import Group, GroupReset, Rmq, Topic

ORDERS = [Order(number, "ann", 100) for number in range(6)]
pytestmark = pytest.mark.rewindmq(wire=True)


async def reset_while_a_pull_is_late(rmq: Rmq, topic: Topic, group: Group, mode: str) -> GroupReset:
    """Reset a group to its first order; its consumer ends before it has consumed anything again."""
    # The response to a pull at the end of the queue, from before the reset.
    late = await rmq.on("PULL_MESSAGE", topic=topic, direction="response").hold()
    await late.met()
    # The pulls after the reset: the consumer gets no order again before its end.
    replay = await rmq.on("PULL_MESSAGE", topic=topic, times=None).hold()
    reset = await group.reset(to="begin", mode=mode)
    await replay.met()
    assert set((await group.offsets()).values()) == {0}
    # The consumer takes the end of the queue from the late response, and commits it.
    commits = await rmq.on("UPDATE_CONSUMER_OFFSET", topic=topic, times=None).hold()
    late.release()
    await rmq.eventually(lambda: any(each.fields["commitOffset"] == len(ORDERS) for each in commits.held))
    commits.release()
    group.crash()
    replay.drop_held()
    return reset


async def test_a_classic_reset_is_lost(rmq: Rmq, ledger: Ledger) -> None:
    topic = await rmq.topic("orders", queues=1)
    await topic.send_many(ORDERS)
    async with rmq.push("billing", topic, OrderListener(ledger)) as group:
        await group.caught_up()
        reset = await reset_while_a_pull_is_late(rmq, topic, group, "classic")
        await group.add_consumer()
        # The next consumer continues behind the orders that were to be delivered again.
        after = await topic.send(Order(6, "ann", 100))
        await group.caught_up()
        assert reset.delivered == [after]


async def test_a_fenced_reset_is_not_lost(rmq: Rmq, ledger: Ledger) -> None:
    topic = await rmq.topic("orders", queues=1)
    await topic.send_many(ORDERS)
    async with rmq.push("billing", topic, OrderListener(ledger)) as group:
        await group.caught_up()
        reset = await reset_while_a_pull_is_late(rmq, topic, group, "fenced")
        await group.add_consumer()
        await reset.redelivered()
        assert reset.delivered == topic.sent
