"""Races with foreign programs: `rewindmq consume`, of which only the frames are recorded, stands for any."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from pathlib import Path

import pytest

from rewindmq import LocalCluster
from rewindmq.__main__ import main
from rewindmq.client.admin.admin_client import AdminClient
from rewindmq.protocol.body.registration import TopicConfig
from rewindmq.protocol.names import retry_topic
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.errors import RaceError
from rewindmq.race.history import Lab
from rewindmq.race.play.run import Plan, Staging
from rewindmq.race.play.run_many import play_many
from rewindmq.race.stage.foreign import Outside, check_command
from rewindmq.race.stage.stage import GROUP

SCALE = 0.03
# The second of two resets, 3 s later, must arrive within the 10 s wait of the first.
OVERLAP_SCALE = 0.5


def consume_command(time_scale: float) -> str:
    return (
        f"{sys.executable} -m rewindmq consume -n {{namesrv}} -t {{topic}} -g {{group}} --from first"
        f" --time-scale {time_scale}"
    )


CONSUME = consume_command(SCALE)


@pytest.mark.slow
def test_a_foreign_client_loses_a_reset_too() -> None:
    plan = Plan(
        "R8-KILL", Profile.V49, ResetMode.CLASSIC, Staging.SCALED, SCALE, Outside(client_command=CONSUME)
    )
    (outcome,) = play_many(plan, range(1), 1, lambda outcome: None)
    assert (outcome.error, outcome.is_documented) == (None, True)
    own = [event for event in outcome.history if event.process.startswith("consumer-")]
    # The history holds only its frames and the laboratory's own steps.
    assert {event.kind for event in own} <= {
        Lab.FRAME_SENT,
        Lab.FRAME_ARRIVED,
        Lab.PROCESS_STARTED,
        Lab.PROCESS_KILLED,
    }
    assert not [event for event in outcome.history if event.details.get("inferred")]


@pytest.mark.slow
def test_a_race_is_played_at_a_running_cluster() -> None:
    with LocalCluster(1, time_scale=SCALE) as cluster:
        outside = Outside(namesrv=cluster.namesrv_address)
        plan = Plan("R1", Profile.V49, ResetMode.CLASSIC, Staging.SCALED, SCALE, outside)
        (outcome,) = play_many(plan, range(1), 1, lambda outcome: None)
        assert (outcome.error, outcome.is_documented) == (None, True)
        assert not [event for event in outcome.history if str(event.kind).startswith("broker.")]
        (again,) = play_many(plan, range(1), 1, lambda outcome: None)
        assert again.error is not None
        assert "already has the topic RaceTopic; a race needs a cluster without one" in again.error
        assert cluster.brokers["broker-a"].is_running


@pytest.mark.slow
def test_a_cluster_that_knows_the_group_is_refused_though_the_topic_is_gone() -> None:
    """Deleting a topic leaves the group's offsets and its retry topic."""
    with LocalCluster(1, time_scale=SCALE) as cluster:

        async def make_retry_topic() -> None:
            async with AdminClient(cluster.namesrv_address) as admin:
                await admin.topics.create_and_update_topic_config(
                    cluster.brokers["broker-a"].address, TopicConfig(topic_name=retry_topic(GROUP))
                )

        asyncio.run(make_retry_topic())
        outside = Outside(namesrv=cluster.namesrv_address)
        plan = Plan("R1", Profile.V49, ResetMode.CLASSIC, Staging.SCALED, SCALE, outside)
        (outcome,) = play_many(plan, range(1), 1, lambda outcome: None)
        assert outcome.error is not None
        assert "already has the topic %RETRY%RaceGroup" in outcome.error


@pytest.mark.slow(full_only="CI plays another race with a foreign client")
def test_a_race_that_needs_chains_of_pulls_is_played_with_a_foreign_client() -> None:
    outside = Outside(client_command=consume_command(OVERLAP_SCALE))
    plan = Plan("R5", Profile.V49, ResetMode.CLASSIC, Staging.SCALED, OVERLAP_SCALE, outside)
    (outcome,) = play_many(plan, range(1), 1, lambda outcome: None)
    assert (outcome.error, outcome.is_documented) == (None, True)


@pytest.mark.slow(full_only="test_stage_contract.py has a wait that times out")
def test_waiting_for_an_event_that_frames_do_not_show_is_an_error() -> None:
    """No frame shows that a consumer gives up a queue."""
    outside = Outside(client_command=CONSUME)
    plan = Plan("UNASSIGNED", Profile.V49, ResetMode.CLASSIC, Staging.SCALED, SCALE, outside)
    (outcome,) = play_many(plan, range(1), 1, lambda outcome: None)
    assert outcome.error is not None
    assert "client.queue_dropped" in outcome.error
    assert outcome.error.endswith("; of this client the laboratory sees only frames")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--client-command", CONSUME], "other programs do not run under virtual time"),
        (["--held", "--client-command", "x {namesrv}"], "--client-command lacks {topic}, {group}"),
        (["--held", "--client-command", "'"], "--client-command: No closing quotation"),
        (["--held", "--namesrv", "nowhere"], "--namesrv: "),
        (["--held", "--namesrv", "127.0.0.1:1", "--repeat", "2"], "--repeat needs a new cluster each time"),
    ],
)
def test_an_error_is_one_line(arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["race", "run", "R1", *arguments]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"rewindmq race: {text}")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        pytest.param(
            ["--scaled", "0.03", "--client-command", "/no/such {namesrv} {topic} {group}"],
            "cannot start /no/such",
            marks=pytest.mark.slow,
        ),
        (
            ["--scaled", "0.03", "--client-command", "false {namesrv} {topic} {group}"],
            "false ended with code 1",
        ),
        (["--held", "--namesrv", "127.0.0.1:1"], "connect to 127.0.0.1:1 failed: Connection refused"),
    ],
)
def test_a_missing_program_or_server_is_an_error(
    arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["race", "run", "R1", "--json", *arguments]) == 1
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert text in run["error"]


def test_a_command_is_split_as_a_shell_would() -> None:
    assert check_command("java -jar 'my client.jar' {namesrv} {topic}@{group}") == [
        *("java", "-jar", "my client.jar", "{namesrv}", "{topic}@{group}")
    ]
    with pytest.raises(RaceError, match=r"lacks \{namesrv\}"):
        check_command("x {topic} {group}")


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="needs Linux's list of processes")
@pytest.mark.slow
def test_no_process_of_a_foreign_client_is_left(tmp_path: Path) -> None:
    """A program that ignores SIGTERM and was started by a script is ended, too."""
    script = tmp_path / "client"
    script.write_text(f"#!/bin/sh\ntrap '' TERM\n{CONSUME.format(namesrv='$1', topic='$2', group='$3')}\n")
    script.chmod(0o755)
    outside = Outside(client_command=f"{script} {{namesrv}} {{topic}} {{group}}")
    plan = Plan("R8-KILL", Profile.V49, ResetMode.CLASSIC, Staging.SCALED, SCALE, outside)
    (outcome,) = play_many(plan, range(1), 1, lambda outcome: None)
    assert outcome.is_documented
    for process in Path("/proc").iterdir():
        # A process may have ended in the meantime.
        with contextlib.suppress(OSError):
            assert str(tmp_path).encode() not in (process / "cmdline").read_bytes()
