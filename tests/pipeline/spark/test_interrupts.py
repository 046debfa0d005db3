"""Ctrl-C within a call to Spark's Java; ``test_processes`` does it to a real job."""

from __future__ import annotations

import contextlib
import logging
import signal

import pytest
from py4j import java_gateway  # type: ignore[import-untyped]

from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.spark.interrupts import interruptible


def interrupt() -> None:
    # Send it to this thread: sent to the process, it could reach another thread, and be handled later.
    signal.raise_signal(signal.SIGINT)


def test_an_interrupt_stops_the_jobs_and_the_previous_handler_is_restored() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), interruptible():
        interrupt()
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupt_that_was_lost_is_what_a_failure_after_it_means() -> None:
    @interruptible()
    def lose_it_and_fail() -> None:
        with contextlib.suppress(KeyboardInterrupt):
            interrupt()
        raise PipelineError("Answer from Java side is empty")

    with pytest.raises(KeyboardInterrupt):
        lose_it_and_fail()


def test_a_failure_without_interrupt_stays_what_it_is() -> None:
    with pytest.raises(PipelineError, match="torn"), interruptible():
        raise PipelineError("torn")


def test_py4j_prints_nothing_and_other_loggers_still_print(caplog: pytest.LogCaptureFixture) -> None:
    # As its modules do: by the root logger, from their own files.
    complain = compile("import logging\nlogging.exception('of py4j')", java_gateway.__file__, "exec")
    with interruptible():
        exec(complain)
        logging.getLogger("py4j.clientserver").error("of py4j")
        logging.error("ours")
    assert [record.message for record in caplog.records] == ["ours"]
