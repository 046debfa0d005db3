"""The demo as a user runs it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from rewindmq.__main__ import main
from tests.support.processes import WAIT_SECONDS, Watched

RESETS = ["reset to the start", "reset into the middle", "skip accumulation"]
STEPS = [
    "notification received",
    "suspended",
    "queues dropped",
    "wait over",
    "offsets applied",
    "offsets persisted",
    "queues removed",
    "resumed",
    "rebalanced",
    "first redelivery",
    "last redelivery",
]


def run_demo(tmp_path: Path, *options: str, seconds: float) -> tuple[dict[str, Any], str]:
    """Run the demo to its end; return the report and the output."""
    report = tmp_path / "report.json"
    done = subprocess.run(
        [sys.executable, "-m", "rewindmq", "demo", "--report", str(report), *options],
        capture_output=True,
        text=True,
        timeout=seconds,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    content: dict[str, Any] = json.loads(report.read_text())
    return content, done.stdout


def is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    # An ended process stays listed as a zombie until its parent waits for it.
    return stat.rpartition(")")[2].split()[0] != "Z"


@pytest.mark.slow
def test_every_figure_is_verified_and_no_process_is_left(tmp_path: Path) -> None:
    report, printed = run_demo(tmp_path, "--time-scale", "0.05", "--messages", "400", seconds=120)
    assert report["ok"] is True
    assert len(report["figures"]) > 30
    assert all(figure["ok"] for figure in report["figures"])
    assert [reset["name"] for reset in report["resets"]] == RESETS
    assert f"All {len(report['figures'])} figures verified" in printed

    assert set(report["processes"]) == {
        "namesrv",
        "broker-a",
        "broker-b",
        "producer",
        "consumer-1",
        "consumer-2",
    }
    assert not any(is_alive(pid) for pid in report["processes"].values())

    again, middle, skip = report["resets"]
    assert [sum(row["redelivered"] for row in reset["queues"]) for reset in (again, middle)] == [400, 240]
    for reset in report["resets"]:
        assert len(reset["queues"]) == 8
        for row in reset["queues"]:
            assert row["requested"] == row["stored"] == row["expected"]
    assert all(row["old"] < row["stored"] for row in skip["queues"])
    assert all(row["requested"] == 0 for row in again["queues"])

    check_timeline(again, least_wait_ms=499)


def check_timeline(reset: dict[str, Any], *, least_wait_ms: int) -> None:
    """Check that the steps are in order, and that the command returns long before the wait is over."""
    admin = reset["timeline"]["admin"]
    assert [step["step"] for step in admin] == [
        "the name server returned the route",
        "reset sent to broker-a",
        "broker-a returned the targets",
        "reset sent to broker-b",
        "broker-b returned the targets",
    ]
    notifications = reset["timeline"]["notifications"]
    assert {(notification["consumer"], notification["broker"]) for notification in notifications} == {
        (consumer, broker) for consumer in ("consumer-1", "consumer-2") for broker in ("broker-a", "broker-b")
    }
    assert sum(notification["queues"] for notification in notifications) == 8
    for notification in notifications:
        steps = notification["steps"]
        assert steps["wait over"] - steps["suspended"] >= least_wait_ms
        assert steps["wait over"] > reset["answeredMs"]
        if notification["queues"]:
            times = [steps[name] for name in STEPS]
            assert times == sorted(times)


@contextmanager
def running_demo(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """Start a demo at real speed; give it and its six processes once it consumes."""
    with subprocess.Popen(
        [sys.executable, "-u", "-m", "rewindmq", "demo", "--messages", "100"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        process_group=0,
    ) as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            # The reset that comes next takes some 10 s.
            if line.startswith("consume from the first offset"):
                break
        children = _children(demo.pid)
        assert len(children) == 6
        yield demo, children


ONE_SIGNAL: Final = pytest.mark.slow(full_only="CI sends three signals; every start is six processes")


@pytest.mark.parametrize(
    "signals",
    [
        pytest.param((signal.SIGINT,), marks=ONE_SIGNAL),
        pytest.param((signal.SIGTERM,), marks=ONE_SIGNAL),
        pytest.param((signal.SIGHUP,), marks=ONE_SIGNAL),
        pytest.param((signal.SIGINT, signal.SIGINT, signal.SIGTERM), marks=pytest.mark.slow),
    ],
)
def test_a_signal_leaves_no_process_and_no_directory(
    tmp_path: Path, signals: tuple[signal.Signals, ...]
) -> None:
    with running_demo(tmp_path) as (demo, children):
        for number in signals:
            demo.send_signal(number)
        _, error = demo.communicate(timeout=WAIT_SECONDS)
    assert (demo.returncode, error) == (130, "")
    assert not any(is_alive(pid) for pid in children)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_process_that_dies_is_named_and_the_others_are_stopped(tmp_path: Path) -> None:
    with running_demo(tmp_path) as (demo, children):
        consumers = [pid for pid in children if b"\0consumer\0" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        os.kill(consumers[0], signal.SIGKILL)
        _, error = demo.communicate(timeout=WAIT_SECONDS)
    assert demo.returncode == 1
    assert re.fullmatch(r"rewindmq demo: consumer-[12] ended with exit code -9: .*\n", error)
    assert not any(is_alive(pid) for pid in children)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow(full_only="tests/cluster/test_local_cluster.py kills the parent of a cluster")
def test_no_process_outlives_a_killed_demo(tmp_path: Path) -> None:
    with running_demo(tmp_path) as (demo, children), closing(Watched(children)) as watched:
        demo.kill()
        demo.communicate(timeout=WAIT_SECONDS)
        watched.wait_gone()


def _children(pid: int) -> list[int]:
    threads = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(word) for children in threads for word in children.read_text().split()]


def test_a_used_directory_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "something").write_text("of mine")
    assert main(["demo", "--keep", str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith(f"rewindmq demo: {tmp_path} is not empty")


def test_a_report_that_cannot_be_written_fails_before_the_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", "--report", str(tmp_path / "no" / "report.json")]) == 1
    assert "No such file or directory" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["--messages", "99"], ["--messages", "many"], ["--time-scale", "0"], ["--profile", "v1"]]
)
def test_options_out_of_range_are_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        main(["demo", *words])
    assert refused.value.code == 2
    message = capsys.readouterr().err
    assert words[0] in message
    assert words[1] in message
    assert "_" not in message.splitlines()[-1]
