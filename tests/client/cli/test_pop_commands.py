"""``rewindmq consume --pop``, ``peek -g`` and ``lag`` for a group that pops, as processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from rewindmq import Message
from rewindmq.sync import LocalCluster

TIMEOUT = 60


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(1, profile="v53") as cluster:
        yield cluster


def run(cluster: LocalCluster, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rewindmq", *words, "-n", cluster.namesrv_address]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)


def objects(cluster: LocalCluster, *words: str) -> list[dict[str, Any]]:
    done = run(cluster, *words, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_what_a_popping_command_has_printed_is_acknowledged(cluster: LocalCluster) -> None:
    with cluster.producer("pop-producer") as producer:
        for number in range(8):
            producer.send(Message("Jobs", b"job %d" % number))
    consume = ("consume", "-t", "Jobs", "-g", "workers", "--pop", "--profile", "v53", "--from", "first")
    done = run(cluster, *consume, "--print", "--count", "8")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert sorted(lines[:-1]) == [f"job {number}" for number in range(8)]
    assert lines[-1] == "received 8 messages"
    # The broker takes the offsets of POPs over within some milliseconds.
    (look,) = objects(cluster, "lag")
    assert [(group["group"], group["consumers"]) for group in look["groups"]] == [("workers", 0)]

    with cluster.producer("pop-producer") as producer:
        producer.send(Message("Jobs", b"next"))
    peeked = objects(cluster, "peek", "Jobs", "-g", "workers")
    assert "next" in [message["body"] for message in peeked]
    done = run(cluster, *consume, "--print", "--count", "1")
    assert done.stdout.splitlines() == ["next", "received 1 messages"]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("peek", "Jobs", "-g", "workers", "--all"), "-g shows what a group would pop next: leave out --all"),
        (("peek", "Jobs", "-g", "nobody here"), "nobody here"),
        (("consume", "-t", "Jobs", "-g", "G", "--pop", "--broadcast"), "a broadcasting consumer cannot pop"),
        (("consume", "-t", "Jobs", "-g", "G", "--pop", "--orderly"), "not allowed with argument"),
    ],
)
def test_what_does_not_fit_fails_with_one_line(
    cluster: LocalCluster, words: tuple[str, ...], problem: str
) -> None:
    done = run(cluster, *words)
    assert done.returncode != 0
    assert problem in done.stderr
    assert "Traceback" not in done.stderr
