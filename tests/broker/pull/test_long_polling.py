"""However many pulls one event wakes, other requests are served between the responses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise
from unittest.mock import Mock

import pytest

from rewindmq.broker.pull.long_polling import CHECK_SECONDS, LongPolling, SuspendedPull
from rewindmq.protocol.header.pull import PullMessageRequestHeader
from rewindmq.race.sim import World

_PULLS = 2_000
# Pulls that one turn of the event loop may answer; each takes some 20 us.
_MOST = 500

Wake = Callable[[LongPolling], None]


def _arrive(polling: LongPolling) -> None:
    polling.on_arrival("T", 0, 1, (0,), (b"",))


def _pass_over(polling: LongPolling) -> None:
    """Leave the pulls to the 5 s loop."""


@pytest.mark.parametrize(("wake", "seconds"), [(_arrive, 0.0), (_pass_over, CHECK_SECONDS)])
def test_pulls_woken_together_are_answered_over_several_turns(wake: Wake, seconds: float) -> None:
    world = World()
    answered: list[SuspendedPull] = []

    async def scenario() -> None:
        runtime = world.runtime()
        polling = LongPolling(runtime.clock, runtime.timers, lambda topic, queue_id: 1)
        polling.start()
        header = PullMessageRequestHeader("G", "T", 0, 0, 32, 0, 0, 0, 0)
        connection, request = Mock(), Mock()
        pulls = [
            SuspendedPull(connection, request, header, 0, 0.0, 100.0, None, answered.append)
            for _ in range(_PULLS)
        ]
        for pull in pulls:
            polling.suspend(pull)
        wake(polling)
        await world.sleep(seconds)
        counts = [len(answered)]
        while counts[-1] < _PULLS:
            await asyncio.sleep(0)
            counts.append(len(answered))
            assert len(counts) < _PULLS, "they are never answered"
        assert max(after - before for before, after in pairwise(counts)) <= _MOST
        assert counts[0] <= _MOST
        assert answered == pulls
        polling.close()

    world.run(scenario())
