"""A log line: one for each event, whatever peers wrote into it."""

from __future__ import annotations

import io
import logging

import pytest

from rewindmq.protocol.remoting.process.log_format import OneLineFormatter
from tests.support.fixtures import RunScenario
from tests.support.stage import SimStage

EVIL = "c1\nFORGED line\r\x1b[2J\u202e\x9b31m\x85\u2028"
SHOWN = r"c1\nFORGED line\r\x1b[2J\u202e\x9b31m\x85\u2028"


@pytest.fixture
def lines() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def log(lines: io.StringIO) -> logging.Logger:
    handler = logging.StreamHandler(lines)
    handler.setFormatter(OneLineFormatter("%(levelname)s %(name)s %(message)s"))
    log = logging.Logger("rewindmq.test")
    log.addHandler(handler)
    return log


def test_control_characters_of_a_message_are_escaped(log: logging.Logger, lines: io.StringIO) -> None:
    log.warning("client %s gone", EVIL)
    assert lines.getvalue() == f"WARNING rewindmq.test client {SHOWN} gone\n"


def test_a_traceback_is_one_line_and_its_error_is_escaped(log: logging.Logger, lines: io.StringIO) -> None:
    try:
        raise ValueError(EVIL)
    except ValueError:
        log.exception("failed for %s", EVIL)
    (line,) = lines.getvalue().splitlines()
    assert line.isprintable()
    assert line.startswith(f"ERROR rewindmq.test failed for {SHOWN} | Traceback (most recent call last): | ")
    assert r"\x1b[2J" in line.partition("Traceback")[2]


def test_a_broker_logs_a_hostile_client_id_as_one_line(
    simulate: RunScenario, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(stage: SimStage) -> None:
        peer = stage.peer(EVIL)
        (await peer.heartbeat()).require_success()
        # Another request keeps the connection open.
        await stage.at(100)
        await peer.stored()
        await stage.at(150)

    with caplog.at_level(logging.WARNING):
        simulate(scenario)
    formatter = OneLineFormatter("%(message)s")
    logged = [formatter.format(record) for record in caplog.records]
    assert f"client {SHOWN} gone: no heartbeat for 120 s" in logged
    assert all(line.isprintable() for line in logged)
