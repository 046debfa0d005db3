"""``rewindmq admin`` from the command line: options, exit codes, error lines and JSON, also in processes."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from rewindmq import (
    ConsumeConcurrentlyStatus,
    ConsumeFromWhere,
    LocalCluster,
    Message,
    MessageExt,
    MessageQueue,
    Producer,
    PushConsumer,
)
from rewindmq.__main__ import build_parser, main
from rewindmq.client.admin.commands.command import Command
from rewindmq.client.admin.commands.table import COMMANDS
from rewindmq.protocol.body.registration import TopicConfig
from rewindmq.protocol.remoting.runtime import system_runtime
from tests.support.process import TIMEOUT
from tests.support.process import command as command_line


class Done(NamedTuple):
    """Exit code and output of a command."""

    returncode: int
    stdout: str
    stderr: str


def admin_process(*words: str, namesrv: str | None = None) -> Done:
    """Run ``rewindmq admin WORDS`` as a process."""
    environment = {key: value for key, value in os.environ.items() if key != "NAMESRV_ADDR"}
    if namesrv is not None:
        environment["NAMESRV_ADDR"] = namesrv
    done = subprocess.run(
        command_line("admin", *words), capture_output=True, text=True, timeout=TIMEOUT, env=environment
    )
    return Done(done.returncode, done.stdout, done.stderr)


def admin(*words: str, namesrv: str) -> Done:
    """Run ``rewindmq admin WORDS`` in this process, which is faster."""
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(io.StringIO()) as out,
        contextlib.redirect_stderr(io.StringIO()) as errors,
    ):
        patch.setenv("NAMESRV_ADDR", namesrv)
        code = main(["admin", *words])
    return Done(code, out.getvalue(), errors.getvalue())


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(brokers=1, time_scale=0.05) as running:
        yield running


def test_without_arguments_the_commands_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["admin"]) == 0
    printed = capsys.readouterr().out
    for command in COMMANDS:
        assert command.name in printed


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_command_shows_its_options_and_an_example(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["admin", "help", command.name.upper()]) == 0
    by_help_command = capsys.readouterr().out
    with pytest.raises(SystemExit) as done:
        main(["admin", command.name.lower(), "-h"])
    assert done.value.code == 0
    assert capsys.readouterr().out == by_help_command
    assert f"rewindmq admin {command.name} -n 127.0.0.1:9876 {command.example}" in by_help_command
    assert "--namesrvAddr" in by_help_command


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_example_parses(command: Command) -> None:
    build_parser("admin").parse_args([command.name, "-n", "127.0.0.1:9876", *command.example.split()])


@pytest.mark.parametrize(
    "words",
    [
        ["resetOffsetByTime", "-g", "G", "-t", "T"],
        ["resetOffsetByTime", "-g", "G", "-t", "T", "-s", "1", "-f", "maybe"],
        ["resetOffsetByTime", "-g", "G", "-t", "T", "-s", "1", "--mode", "fence"],
        ["resetOffsetByTime", "-g", "G", "-t", "T", "-s", "1", "-b", "a:1", "-q", "-1"],
        ["resetOffsetByTime", "-g", "G", "-t", "T", "-s", "1", "-b", "a:1", "-q", f"{2**31}"],
        ["resetOffsetByTime", "-g", "G", "-t", "T", "-s", "1", "-b", "a:1", "-q", "0", "-o", f"{2**63}"],
        ["skipAccumulatedMessage", "-g", "G", "-t", "T", "--mode", ""],
        ["updateTopic", "-t", "T"],
        ["updateTopic", "-t", "T", "-b", "a:1", "-c", "C"],
        ["updateTopic", "-t", "T", "-c", "C", "-p", "3"],
        ["updateTopic", "-t", "T", "-c", "C", "-r", "0"],
        ["clusterList", "-i", "0"],
        ["noSuchCommand"],
        ["topicList", "--profile", "v99"],
    ],
    ids=" ".join,
)
def test_wrong_options_show_the_usage_and_exit_2(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        main(["admin", *words])
    assert refused.value.code == 2
    assert "usage: rewindmq admin" in capsys.readouterr().err


def test_help_on_an_unknown_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["admin", "help", "noSuchCommand"]) == 2
    assert capsys.readouterr().err == "The sub command noSuchCommand not exist.\n"


def test_a_missing_name_server_option_is_reported_in_one_line() -> None:
    done = admin_process("topicList")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "no name server: give -n HOST:PORT, or set NAMESRV_ADDR\n"


def test_an_unreachable_name_server_is_reported_in_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = admin_process("topicRoute", "-n", address, "-t", "T")
    assert (done.returncode, done.stdout) == (1, "")
    assert address in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_invalid_time_is_reported_in_one_line(cluster: LocalCluster) -> None:
    done = admin(
        "resetOffsetByTime", "-g", "G", "-t", "T", "-s", "yesterday", namesrv=cluster.namesrv_address
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("'yesterday' is not a time")
    assert done.stderr.count("\n") == 1


def test_a_refusal_is_reported_as_code_and_remark_in_one_line(cluster: LocalCluster) -> None:
    done = admin("topicRoute", "-t", "nowhere", namesrv=cluster.namesrv_address)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("CODE: 17  DESC: No topic route info in name server for the topic: nowhere")
    assert done.stderr.count("\n") == 1


def test_commands_in_any_case_with_text_or_json_output(cluster: LocalCluster) -> None:
    created = admin("UPDATETOPIC", "-c", "DefaultCluster", "-t", "CliTopic", namesrv=cluster.namesrv_address)
    assert created.returncode == 0
    assert created.stdout.startswith(f"create topic to {cluster.brokers['broker-a'].address} success.\n")
    assert created.stdout.endswith("]\n")

    status = admin_process("topicStatus", "-t", "CliTopic", "--json", "-n", cluster.namesrv_address)
    assert [row["queueId"] for row in json.loads(status.stdout)] == list(range(8))

    route = admin("topicRoute", "-t", "CliTopic", "--json", namesrv=cluster.namesrv_address)
    assert json.loads(route.stdout)["queueDatas"][0]["writeQueueNums"] == 8

    assert admin("topiclist", namesrv=cluster.namesrv_address).stdout.splitlines().count("CliTopic") == 1
    assert admin("consumerProgress", "--json", namesrv=cluster.namesrv_address).stdout == ""


async def consume_three(namesrv: str) -> None:
    """Send three messages, consume them with the group ``leavers``, and shut its consumer down."""
    runtime = system_runtime(time_scale=0.05)
    arrived = asyncio.Semaphore(0)

    async def listener(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        for _ in messages:
            arrived.release()
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    consumer = PushConsumer(
        "leavers", namesrv, runtime=runtime, consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    )
    consumer.subscribe("Offline")
    consumer.register_message_listener(listener)
    async with Producer("senders", namesrv, runtime=runtime) as producer, consumer:
        for _ in range(3):
            await producer.send(Message("Offline", b"x"))
        async with asyncio.timeout(TIMEOUT):
            for _ in range(3):
                await arrived.acquire()


def test_a_reset_of_an_offline_group_writes_its_offsets(cluster: LocalCluster) -> None:
    namesrv = cluster.namesrv_address
    admin("updateTopic", "-c", "DefaultCluster", "-t", "Offline", "-r", "1", "-w", "1", namesrv=namesrv)
    refused = admin("skipAccumulatedMessage", "-g", "leavers", "-t", "Offline", namesrv=namesrv)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == "CODE: 1  DESC: THe consumer group <leavers> not exist\n"

    asyncio.run(consume_three(namesrv))
    done = admin("resetOffsetByTime", "-g", "leavers", "-t", "Offline", "-s", "1", "--json", namesrv=namesrv)
    assert json.loads(done.stdout) == {
        "group": "leavers",
        "topic": "Offline",
        "force": True,
        "timestamp": 1,
        "online": False,
        "mode": None,
        "queues": [
            {
                "brokerName": "broker-a",
                "queueId": 0,
                "brokerOffset": 3,
                "consumerOffset": 3,
                "timestampOffset": 0,
                "rollbackOffset": 0,
            }
        ],
    }
    progress = admin("consumerProgress", "-g", "leavers", "--json", namesrv=namesrv)
    assert json.loads(progress.stdout)["diffTotal"] == 3


def test_a_closed_standard_output_ends_the_command_without_a_traceback(cluster: LocalCluster) -> None:
    command = f"{sys.executable} -m rewindmq admin clusterList -i 1 -n {cluster.namesrv_address} | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=TIMEOUT)
    assert done.stdout.startswith("#Cluster Name")
    assert "Traceback" not in done.stderr


@pytest.mark.slow(full_only="the laboratory plays the races of a killed broker")
def test_a_fenced_reset_survives_a_kill_of_the_broker() -> None:
    with LocalCluster(brokers=1, time_scale=0.05) as running:
        namesrv = running.namesrv_address
        admin("updateTopic", "-c", "DefaultCluster", "-t", "Offline", "-r", "1", "-w", "1", namesrv=namesrv)
        asyncio.run(consume_three(namesrv))
        line = ("resetOffsetByTime", "-g", "leavers", "-t", "Offline", "-s", "1")
        done = admin(*line, "--mode", "fenced", "--json", namesrv=namesrv)
        answer = json.loads(done.stdout)
        assert (answer["mode"], answer["online"]) == ("fenced", True)
        assert answer["queues"] == [{"brokerName": "broker-a", "queueId": 0, "offset": 0}]
        running.kill("broker-a")
        running.restart("broker-a")
        refused = admin(*line, "--mode", "classic", namesrv=namesrv)
        assert refused.returncode == 1
        assert "use --mode fenced" in refused.stderr
        stored = admin("consumerProgress", "-g", "leavers", "--json", namesrv=namesrv)
        assert '"consumerOffset": 0' in stored.stdout
        assert "Listed: 0, of 0" in admin("fencedCommits", namesrv=namesrv).stdout


def test_two_operators_reset_a_group_to_the_offsets_of_a_file_after_one_preview(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    topic, group = "ResetToOffsets", "reset-to-offsets"

    async def prepare() -> None:
        async with cluster.admin() as client:
            address = cluster.brokers["broker-a"].address
            config = TopicConfig(topic_name=topic, read_queue_nums=1, write_queue_nums=1)
            await client.topics.create_and_update_topic_config(address, config)
            async with cluster.producer("senders") as producer:
                for number in range(4):
                    await producer.send(Message(topic, b"%d" % number))
            await client.resets.reset(topic, group, {MessageQueue(topic, "broker-a", 0): 4}, write=True)

    asyncio.run(prepare())
    offsets, preview = tmp_path / "offsets", tmp_path / "preview"
    queue = {"brokerName": "broker-a", "queueId": 0, "offset": 1}
    offsets.write_text(json.dumps({"topic": topic, "queues": [queue]}))
    words = ("resetOffsetByTime", "-t", topic, "-g", group, "--from-file", str(offsets), "--json")
    shown = admin(*words, "--preview", namesrv=cluster.namesrv_address)
    assert json.loads(shown.stdout)["redelivered"] == 3
    preview.write_text(shown.stdout)
    # No consumer takes the queue, so the watch ends as unknown.
    first = admin(*words, "--expect", str(preview), "--watch", "--wait", "0", namesrv=cluster.namesrv_address)
    assert (first.returncode, json.loads(first.stdout.splitlines()[-1])["verdict"]) == (4, "unknown")
    second = admin(*words, "--expect", str(preview), namesrv=cluster.namesrv_address)
    assert (second.returncode, json.loads(second.stdout)["moved"]) == (
        5,
        ["broker-a:0: stored offset was 4, is 1"],
    )
    offsets.write_text("{}")
    third = admin(*words, namesrv=cluster.namesrv_address)
    assert (third.returncode, third.stdout) == (1, "")
    assert third.stderr.startswith("the file of offsets has another form (Object missing required field")
