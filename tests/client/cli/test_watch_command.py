"""``rewindmq watch`` as a process of its own, at a real cluster that another tool resets."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from rewindmq import ConsumeConcurrentlyStatus, Message, MessageExt
from rewindmq.sync import LocalCluster
from tests.support.processes import wait_until

TIMEOUT = 60
TOPIC, GROUP = "WatchTopic", "watch_group"
COUNT = 20


def rewindmq(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rewindmq", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)


def test_a_reset_by_another_tool_is_recorded_and_then_proven(tmp_path: Path) -> None:
    file = tmp_path / "reset.jsonl"
    received = threading.Semaphore(0)

    def listener(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        for _ in messages:
            received.release()
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    def consumed() -> None:
        for _ in range(COUNT):
            assert received.acquire(timeout=TIMEOUT)

    def lines() -> list[bytes]:
        """The whole lines of the file."""
        return file.read_bytes().split(b"\n")[:-1] if file.exists() else []

    def are_stored() -> bool:
        """True if the last sample shows that the group has stored all its offsets: then it may be reset."""
        found = lines()
        rows = json.loads(found[-1])["queues"] if len(found) > 1 else []
        return bool(sum(seen["stored"] for _, _, seen in rows) == COUNT)

    with LocalCluster(1, time_scale=0.1) as cluster, cluster.producer("watch-producer") as producer:
        names = "-n", cluster.namesrv_address
        for number in range(COUNT):
            producer.send(Message(TOPIC, b"%d" % number))
        consumer = cluster.push_consumer(GROUP, consume_from="first")
        consumer.subscribe(TOPIC)
        consumer.register_message_listener(listener)
        with consumer:
            consumed()
            command = [sys.executable, "-m", "rewindmq", "watch", "record", "-t", TOPIC, "-g", GROUP]
            recorder = subprocess.Popen(
                [*command, *names, str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            with recorder:
                wait_until(recorder, are_stored)
                reset = rewindmq("admin", "resetOffsetByTime", "-t", TOPIC, "-g", GROUP, "-s", "0", *names)
                assert reset.returncode == 0, reset.stderr
                consumed()
                after = len(lines())
                wait_until(recorder, lambda: len(lines()) >= after + 4)
                recorder.send_signal(signal.SIGINT)
                out, err = recorder.communicate(timeout=TIMEOUT)
    assert (recorder.returncode, err) == (0, "")
    assert f"recording group[{GROUP}], topic[{TOPIC}], queues: 4" in out
    judged = rewindmq("watch", "judge", str(file), "--json")
    verdict = json.loads(judged.stdout)
    assert (judged.returncode, verdict["verdict"]) == (0, "proven"), verdict
    shown = rewindmq("watch", "judge", str(file))
    assert shown.stdout.splitlines()[-1] == "verdict: proven (4 proven)"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("judge", "{tmp}/none"), "cannot read the recording"),
        (("judge", "{tmp}/cut.jsonl"), "no recording"),
        (("judge", "{tmp}/cut.jsonl", "--at", "3"), "no recording"),
        (("record", "-t", "T", "-g", "G", "-n", "127.0.0.1:9", "{tmp}/cut.jsonl"), "exists already"),
        (("record", "-t", "T", "-g", "G", "-n", "127.0.0.1:9", "{tmp}/no/file"), "cannot be written"),
        (("record", "-t", "T", "-g", "G", "-n", "127.0.0.1:9", "{tmp}/new.jsonl"), "connect to 127.0.0.1:9"),
    ],
)
def test_bad_input_gets_one_line(tmp_path: Path, words: tuple[str, ...], text: str) -> None:
    (tmp_path / "cut.jsonl").write_bytes(b"{")
    done = rewindmq("watch", *(word.format(tmp=tmp_path) for word in words))
    assert (done.returncode, done.stdout) == (1, "")
    assert text in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["cut.jsonl"]
