"""``rewindmq produce`` and ``rewindmq consume`` as processes of their own, over real sockets."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from rewindmq import Message
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from tests.client.scripted_broker import ScriptedBroker
from tests.support.fixtures import real_stage
from tests.support.stage import ServerStage

# Seconds; turns a hang into a failure.
TIMEOUT = 60
# A tenth of the protocol's waits, like the fixture's broker.
QUICK = ("--time-scale", "0.1")


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[ServerStage]:
    """Start a name server and a broker in this process."""
    async with real_stage(tmp_path, time_scale=0.1) as made:
        await made.start_namesrv()
        await made.start_broker()
        yield made


@pytest.fixture
def namesrv_addr(stage: ServerStage) -> str:
    return stage.namesrv


async def start(*arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "rewindmq",
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def finish(process: asyncio.subprocess.Process) -> tuple[int | None, list[dict[str, Any]], list[str]]:
    """Return the exit code, the JSON lines of standard output, and the command's own lines of standard error.

    Log lines are left out: a slow machine may cause warnings.
    """
    out, err = await asyncio.wait_for(process.communicate(), TIMEOUT)
    assert b"Traceback" not in err, err.decode()
    said = [line for line in err.decode().splitlines() if line.startswith("rewindmq ")]
    return process.returncode, [json.loads(line) for line in out.splitlines()], said


async def next_event(process: asyncio.subprocess.Process, name: str) -> dict[str, Any]:
    assert process.stdout is not None
    while True:
        line = await asyncio.wait_for(process.stdout.readline(), TIMEOUT)
        assert line, "the process ended"
        event: dict[str, Any] = json.loads(line)
        if event["event"] == name:
            return event


async def produce(address: str, count: int, *options: str) -> list[dict[str, Any]]:
    arguments = ("-n", address, "-t", "T", "-c", str(count), "--json", *options)
    code, events, errors = await finish(await start("produce", *arguments))
    assert (code, errors) == (0, [])
    return events


async def send(stage: ServerStage, count: int) -> None:
    """Send ``count`` messages to topic T from this process, one by one."""
    producer = await stage.producer()
    for number in range(count):
        await producer.send(Message("T", b"%d" % number))


async def test_consume_receives_what_produce_sent(namesrv_addr: str) -> None:
    events = await produce(namesrv_addr, 40, "--in-flight", "8", "--tag", "TagA")
    assert events[0]["event"] == "ready"
    summary = events[-1]
    assert (summary["event"], summary["sent"]) == ("summary", 40)
    assert sum(queue["sent"] for queue in summary["queues"]) == 40
    assert summary["started_at"] <= summary["ended_at"]
    consume = ("consume", "-n", namesrv_addr, "-t", "T", "-g", "G", "--from", "first", "--time-scale", "0.1")
    code, events, errors = await finish(await start(*consume, "--count", "40", "--json", "--events"))
    assert (code, errors) == (0, [])
    assert (events[-1]["event"], events[-1]["received"]) == ("summary", 40)
    assert sum(queue["received"] for queue in events[-1]["queues"]) == 40
    assert {queue["duplicates"] for queue in events[-1]["queues"]} == {0}
    assert sum(event["count"] for event in events if event["event"] == "consumed") == 40
    assert {"client.queue_added", "client.pull_sent", "client.listener_called"} <= {
        e["event"] for e in events
    }


async def test_orderly_messages_beyond_the_count_go_to_the_next_run(
    stage: ServerStage, namesrv_addr: str
) -> None:
    await send(stage, 60)
    consume = ("consume", "-n", namesrv_addr, "-t", "T", "-g", "G", "--from", "first", "--profile", "v53")
    received: list[int] = []
    ends: dict[int, int] = {}
    for count in (20, 40):
        code, events, errors = await finish(
            await start(*consume, "--orderly", "--count", str(count), "--json", "--time-scale", "0.1")
        )
        assert (code, errors) == (0, [])
        received.append(events[-1]["received"])
        ends.update({queue["queue"]: queue["last"] + 1 for queue in events[-1]["queues"]})
    # The last offsets add up to all messages, so no message was received twice.
    assert (received, sum(ends.values())) == ([20, 40], 60)


async def test_each_broadcasting_consumer_gets_every_message_once(
    stage: ServerStage, namesrv_addr: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    await send(stage, 12)
    consume = (
        "consume",
        "-n",
        namesrv_addr,
        "-t",
        "T",
        "-g",
        "G",
        "--from",
        "first",
        "--broadcast",
        "--json",
        *QUICK,
    )
    consumers = [await start(*consume, "--instance", name, "--count", "12") for name in ("m1", "m2")]
    for consumer in consumers:
        code, events, _ = await finish(consumer)
        assert (code, events[-1]["received"]) == (0, 12)
    files = await asyncio.to_thread(lambda: list(tmp_path.rglob("offsets.json")))
    assert {path.parent.parent.name for path in files} == {"127.0.0.1@m1", "127.0.0.1@m2"}


async def test_messages_beyond_the_count_are_not_committed(stage: ServerStage, namesrv_addr: str) -> None:
    await send(stage, 90)
    consume = ("consume", "-n", namesrv_addr, "-t", "T", "-g", "G", "--from", "first", "--json", *QUICK)
    received = []
    for count in (7, 83):
        code, events, _ = await finish(await start(*consume, "--count", str(count)))
        assert code == 0
        received.append(events[-1]["received"])
    assert received == [7, 83]
    # All messages were received, the last ones in the second run.
    assert sum(queue["last"] + 1 for queue in events[-1]["queues"]) == 90


async def test_an_interrupted_produce_exits_with_130(namesrv_addr: str) -> None:
    process = await start("produce", "-n", namesrv_addr, "-t", "T", "-c", "1000", "--rate", "10", "--json")
    await next_event(process, "progress")
    process.send_signal(signal.SIGINT)
    code, events, errors = await finish(process)
    assert (code, errors) == (130, [])
    assert 0 < events[-1]["sent"] < 1000


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_produce_that_waits_for_its_rate_ends_at_once(
    namesrv_addr: str, number: signal.Signals
) -> None:
    process = await start(
        "produce", "-n", namesrv_addr, "-t", "T", "-c", "5", "--rate", "1e-9", "--in-flight", "2", "--json"
    )
    # The first message is due at once, the second one in 30 years.
    while (await next_event(process, "progress"))["sent"] < 1:
        pass
    process.send_signal(number)
    code, events, errors = await finish(process)
    assert (code, errors) == (130, [])
    assert (events[-1]["event"], events[-1]["sent"], events[-1]["unanswered"]) == ("summary", 1, 0)


class SilentServer:
    """Accepts connections and never answers a request.

    Attributes:
        asked: set by the first request.
    """

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.address = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(65_536):
            self.asked.set()
        writer.close()


@pytest.fixture
async def silent_server() -> AsyncIterator[SilentServer]:
    """Start a silent server."""
    silent = SilentServer()
    server = await asyncio.start_server(silent.serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    silent.address = f"{host}:{port}"
    yield silent
    server.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    ("command", "code", "summary"),
    [
        (("produce", "-t", "T", "x"), 130, {"sent": 0, "unanswered": 1}),
        (("consume", "-t", "T", "-g", "G"), 0, {"received": 0}),
    ],
    ids=["produce", "consume"],
)
async def test_a_stopped_command_does_not_wait_for_a_pending_response(
    silent_server: SilentServer,
    command: tuple[str, ...],
    code: int,
    summary: dict[str, int],
    number: signal.Signals,
) -> None:
    process = await start(*command, "-n", silent_server.address, "--json")
    await asyncio.wait_for(silent_server.asked.wait(), TIMEOUT)
    process.send_signal(number)
    ended, events, errors = await finish(process)
    # A request that ran into its timeout would print an error.
    assert (ended, errors) == (code, [])
    assert events[-1]["event"] == "summary"
    assert summary.items() <= events[-1].items()


async def test_sigterm_ends_consume_with_its_summary(stage: ServerStage, namesrv_addr: str) -> None:
    await send(stage, 12)
    process = await start(
        "consume", "-n", namesrv_addr, "-t", "T", "-g", "G", "--from", "first", "--json", "--batch", "32"
    )
    while (await next_event(process, "progress"))["received"] < 12:
        pass
    process.send_signal(signal.SIGTERM)
    code, events, errors = await finish(process)
    assert (code, errors) == (0, [])
    assert (events[-1]["event"], events[-1]["received"]) == ("summary", 12)


async def test_consume_reports_a_missing_topic_and_waits_for_it(
    stage: ServerStage, namesrv_addr: str
) -> None:
    consumer = await start(
        *("consume", "-n", namesrv_addr, "-t", "T", "-g", "G", "--from", "first", "--count", "1"),
        *("--json", "--time-scale", "0.01"),
    )
    await next_event(consumer, "ready")
    await send(stage, 1)
    code, events, errors = await finish(consumer)
    assert (code, events[-1]["received"]) == (0, 1)
    text = "topic T does not exist yet; waiting for it (rewindmq admin topicList lists all topics)"
    assert errors == [f"rewindmq consume: {text}"]


async def test_print_writes_the_message_bodies(namesrv_addr: str) -> None:
    await produce(namesrv_addr, 2, "--body", "number {i}", "--first", "5")
    process = await start(
        "consume",
        "-n",
        namesrv_addr,
        "-t",
        "T",
        "-g",
        "G",
        "--from",
        "first",
        "--print",
        "--count",
        "2",
        *QUICK,
    )
    out, err = await asyncio.wait_for(process.communicate(), TIMEOUT)
    lines = out.decode().splitlines()
    assert sorted(lines[:2]) == ["number 5", "number 6"]
    assert lines[2] == "received 2 messages"
    assert process.returncode == 0, err


async def test_messages_of_a_send_that_failed_after_it_had_left_count_as_unanswered(
    stage: ServerStage,
) -> None:
    broker = ScriptedBroker(stage.new_runtime(), {"T": 1})
    broker.handlers[RequestCode.SEND_BATCH_MESSAGE] = lambda connection, request: RemotingCommand(
        ResponseCode.SUCCESS, ext_fields={"msgId": "and nothing else"}
    )
    await broker.start("127.0.0.1")
    try:
        arguments = ("-n", broker.address, "-t", "T", "-c", "6", "--batch", "3", "--json")
        code, events, errors = await finish(await start("produce", *arguments))
    finally:
        await broker.close()
    assert code == 1
    assert (events[-1]["event"], events[-1]["sent"], events[-1]["unanswered"]) == ("summary", 0, 3)
    assert len(errors) == 1
    assert "broker-a has stored the message, but its response cannot be read" in errors[0]
    assert len(broker.times(RequestCode.SEND_BATCH_MESSAGE)) == 1


@pytest.mark.parametrize("command", [("produce", "-t", "T", "x"), ("consume", "-t", "T", "-g", "G")])
async def test_an_unreachable_name_server_is_reported_in_one_line_with_exit_code_1(
    command: tuple[str, ...],
) -> None:
    process = await start(*command, "-n", "127.0.0.1:1")
    out, err = await asyncio.wait_for(process.communicate(), TIMEOUT)
    assert process.returncode == 1
    text = err.decode()
    assert text.startswith(f"rewindmq {command[0]}: ")
    assert text.count("\n") == 1
    assert "127.0.0.1:1" in text
    assert b"Traceback" not in out + err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("consume", "-t", "../x", "-g", "G", "-n", "127.0.0.1:1"), "illegal characters"),
        (
            ("consume", "-t", "T", "-g", "DEFAULT_CONSUMER", "-n", "127.0.0.1:1"),
            "can not equal DEFAULT_CONSUMER",
        ),
        (("consume", "-t", "T", "-g", "G", "-n", "127.0.0.1:1", "--from", "noon"), "yyyyMMddHHmmss"),
        (("consume", "-t", "T", "-g", "G", "-n", "127.0.0.1:1", "--from", str(1 << 63)), "Out of range"),
        (("produce", "-t", "T", "-n", "nowhere"), "host:port"),
        (("produce", "-t", "T", "-n", "127.0.0.1:1", ""), "body length is zero"),
        (("produce", "-t", "T", "--transaction", "commit", "--batch", "2", "x"), "do not go together"),
    ],
)
async def test_invalid_options_are_reported_in_one_line(options: tuple[str, ...], words: str) -> None:
    process = await start(*options)
    _, err = await asyncio.wait_for(process.communicate(), TIMEOUT)
    assert process.returncode == 1
    assert words in err.decode()
    assert err.decode().count("\n") == 1


@pytest.mark.parametrize("options", [("--json", "--events"), ("--print",)], ids=["json", "print"])
async def test_a_closed_standard_output_ends_consume_silently(
    stage: ServerStage, namesrv_addr: str, options: tuple[str, ...]
) -> None:
    """Such as ``rewindmq consume ... | head -1``, which once logged a traceback every second."""
    await send(stage, 4)
    reader, writer = os.pipe()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "rewindmq", "consume", "-n", namesrv_addr, "-t", "T", "-g", "G"),
        *("--from", "first", "--time-scale", "0.1", *options),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=writer,
        stderr=asyncio.subprocess.PIPE,
    )
    os.close(writer)
    if "--json" in options:
        assert b'"ready"' in await asyncio.to_thread(os.read, reader, 65_536)
    os.close(reader)
    _, errors = await asyncio.wait_for(process.communicate(), TIMEOUT)
    assert process.returncode == 1
    assert b"Traceback" not in errors
    assert b"BrokenPipe" not in errors
