"""A disk that fills while timer messages wait, are taken and are due: none is lost, none comes twice."""

from __future__ import annotations

import errno
import logging

import pytest

from rewindmq.protocol.profile import Profile
from tests.broker.timer.box import stored
from tests.support.failing_disk import FailingDisk
from tests.support.fixtures import RunScenario
from tests.support.stage import SimStage

# A segment has some 100 messages, a file of the timer log 19 units.
SMALL = {
    "mapped_file_size_commit_log": 65_536,
    "mapped_file_size_consume_queue": 400,
    "mapped_file_size_timer_log": 1_000,
}
ADDING = ("create", "map", "allocate", "write", "replace", "rewrite", "sync")


@pytest.mark.parametrize("full_at", [3.0, 7.5], ids=["before-they-are-taken", "when-they-are-due"])
def test_a_full_disk_delays_timer_messages(
    simulate: RunScenario, caplog: pytest.LogCaptureFixture, full_at: float
) -> None:
    """RocketMQ discards a message that it cannot store three times."""

    async def scenario(stage: SimStage) -> None:
        disk = FailingDisk(stage.runtime.clock.now_ms)
        await stage.start_broker(disk=disk.disk, store=SMALL, profile=Profile.V53)
        peer = stage.peer()
        kept = []
        await stage.at(1.0)
        number = 0
        while stage.runtime.clock.monotonic() < full_at + 3.0:
            if stage.runtime.clock.monotonic() >= full_at and not disk.failures:
                disk.fail(errno.ENOSPC, *ADDING)
            for _ in range(40):
                number += 1
                response = await peer.send(
                    properties={"UNIQ_KEY": str(number), "TIMER_DELAY_SEC": "8"}, body=bytes(300)
                )
                if response.code == 0:
                    kept.append(str(number))
            await stage.at(stage.runtime.clock.monotonic() + 0.25)
        assert disk.failures
        await stage.at(30.0)
        before = [message.properties["UNIQ_KEY"] for message in stored(stage.broker)]
        disk.mend()
        await stage.at(60.0)
        came = [message.properties["UNIQ_KEY"] for message in stored(stage.broker)]
        assert len(before) < len(kept) < number
        assert sorted(came) == sorted(kept)

    caplog.set_level(logging.ERROR)
    simulate(scenario)
    assert not [record for record in caplog.records if record.exc_info]
    assert len(caplog.records) < 90
