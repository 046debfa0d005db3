"""An error that leaves a cluster's block carries the processes' logs, whose files are removed."""

from __future__ import annotations

import pytest

from rewindmq import LocalCluster


def notes(error: BaseException) -> str:
    return "\n".join(getattr(error, "__notes__", ()))


def test_a_failure_in_the_block_carries_the_logs_of_the_processes() -> None:
    with pytest.raises(ZeroDivisionError) as failure, LocalCluster(brokers=1):
        _ = 1 // 0
    assert "the log of namesrv ends:" in notes(failure.value)
    assert "the log of broker-a ends:" in notes(failure.value)


async def test_a_failure_in_an_asynchronous_block_carries_them_too() -> None:
    with pytest.raises(ZeroDivisionError) as failure:
        async with LocalCluster(brokers=1):
            _ = 1 // 0
    assert "the log of broker-a ends:" in notes(failure.value)


def test_an_interrupt_is_no_failure() -> None:
    with pytest.raises(KeyboardInterrupt) as interrupt, LocalCluster(brokers=1):
        raise KeyboardInterrupt
    assert notes(interrupt.value) == ""
