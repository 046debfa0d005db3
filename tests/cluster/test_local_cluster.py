"""A local cluster of real processes: it starts, survives kills, and leaves no process or file behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from rewindmq import AdminClient, ClusterError, LocalCluster
from rewindmq.__main__ import main
from rewindmq.broker.config import read_broker_config
from rewindmq.protocol.errors import ConfigError
from tests.cluster.cluster_stage import BrokersAt, ProcessesOf, Watch
from tests.support.processes import WAIT_SECONDS, Watched

# 30 s between two registrations become 0.6 s.
FAST = 0.02
# Every test here starts two processes or more, so the default group has one signal.


def entries(directory: Path) -> list[str]:
    return [entry.name for entry in directory.iterdir()]


def until(condition: Callable[[], object]) -> None:
    """Poll a condition without a pause; each poll reads all of /proc, which takes long enough."""
    while not condition():
        pass


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The parent directory of this test's temporary directories."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


async def test_async_use_from_start_to_end(scratch: Path, watch: Watch, brokers_at: BrokersAt) -> None:
    async with LocalCluster(brokers=2) as cluster:
        watched = watch([cluster.namesrv.pid, *(broker.pid for broker in cluster.brokers.values())])
        known = await brokers_at(cluster.namesrv_address, {"broker-a", "broker-b"})
        assert known == {name: broker.address for name, broker in cluster.brokers.items()}
        assert len({cluster.namesrv.pid, *(broker.pid for broker in cluster.brokers.values())}) == 3
        directory = cluster.directory
        assert directory.parent == scratch
        assert all(broker.log_path.exists() for broker in cluster.brokers.values())
        assert all(broker.store_path.is_dir() for broker in cluster.brokers.values())
    watched.wait_gone()
    assert entries(scratch) == []


def test_sync_use_keeps_a_given_directory(tmp_path: Path, watch: Watch) -> None:
    directory = tmp_path / "kept"
    with LocalCluster(
        brokers=1, directory=directory, broker_config={"flushDiskType": "SYNC_FLUSH"}
    ) as cluster:
        watched = watch([cluster.namesrv.pid, cluster.brokers["broker-a"].pid])
        host, port = cluster.namesrv_address.split(":")
        socket.create_connection((host, int(port))).close()
    watched.wait_gone()
    config = dict(
        line.split("=", 1) for line in (directory / "broker-a" / "broker.conf").read_text().splitlines()
    )
    assert config["brokerName"] == "broker-a"
    assert config["flushDiskType"] == "SYNC_FLUSH"
    assert config["storePathRootDir"] == str(directory / "broker-a" / "store")
    assert (directory / "logs" / "namesrv.log").read_text().count(" serves at ") == 1
    with pytest.raises(ClusterError, match="not running"):
        _ = cluster.namesrv_address


async def test_a_killed_broker_restarts_at_its_port(brokers_at: BrokersAt) -> None:
    async with LocalCluster(brokers=2, time_scale=FAST) as cluster:
        address, pid = cluster.brokers["broker-a"].address, cluster.brokers["broker-a"].pid
        await cluster.kill("broker-a")
        assert not cluster.brokers["broker-a"].is_running
        with pytest.raises(ClusterError, match="broker-a is not running"):
            _ = cluster.brokers["broker-a"].pid
        await brokers_at(cluster.namesrv_address, {"broker-b"})
        await cluster.restart("broker-a")
        assert cluster.brokers["broker-a"].address == address
        assert cluster.brokers["broker-a"].pid != pid
        known = await brokers_at(cluster.namesrv_address, {"broker-a", "broker-b"})
        assert known["broker-a"] == address


async def test_a_stopped_broker_and_a_restarted_name_server(brokers_at: BrokersAt) -> None:
    async with LocalCluster(brokers=2, time_scale=FAST) as cluster:
        await cluster.stop("broker-b")
        await brokers_at(cluster.namesrv_address, {"broker-a"})
        address = cluster.namesrv_address
        await cluster.restart("namesrv")
        assert cluster.namesrv_address == address
        # The name server stores no routes: the broker's next registration fills the tables again.
        await brokers_at(address, {"broker-a"})


def test_an_exception_in_the_block_leaves_no_process(scratch: Path, watch: Watch) -> None:
    watched: list[Watched] = []

    def interrupted() -> None:
        with LocalCluster(brokers=1) as cluster:
            watched.append(watch([cluster.namesrv.pid, cluster.brokers["broker-a"].pid]))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    watched[0].wait_gone()
    assert entries(scratch) == []


def test_a_process_that_cannot_start_stops_the_others(scratch: Path, processes_of: ProcessesOf) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ClusterError) as caught, LocalCluster(brokers=1, broker_port=port):
            raise AssertionError("must not start")
    text = str(caught.value)
    assert text.startswith("broker-a did not start (exit code 1): ")
    assert text.endswith(f"cannot listen on 127.0.0.1:{port}: Address already in use")
    assert "\n" not in text
    assert caught.value.log_tail
    assert processes_of(scratch) == []
    assert entries(scratch) == []


async def test_a_cancelled_start_leaves_nothing(scratch: Path, processes_of: ProcessesOf) -> None:
    cluster = LocalCluster(brokers=2)
    starting = asyncio.ensure_future(cluster.__aenter__())
    await asyncio.to_thread(until, lambda: processes_of(scratch))
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert processes_of(scratch) == []
    assert entries(scratch) == []


def test_unknown_names_and_counts_out_of_range_are_refused() -> None:
    for count in (0, 27):
        with pytest.raises(ClusterError, match="brokers must be 1 to 26"):
            LocalCluster(brokers=count)
    with pytest.raises(ClusterError, match="there is no process 'broker-a'"):
        LocalCluster().kill("broker-a")


def test_killing_the_parent_leaves_no_process(tmp_path: Path, watch: Watch) -> None:
    code = (
        "import sys, time\n"
        "from rewindmq import LocalCluster\n"
        "cluster = LocalCluster(brokers=2, directory=sys.argv[1])\n"
        "cluster.start()\n"
        "print(cluster.namesrv.pid, *(broker.pid for broker in cluster.brokers.values()), flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        watched = watch(map(int, parent.stdout.readline().split()))
        parent.kill()
    watched.wait_gone()
    assert "the parent process is gone" in (tmp_path / "logs" / "broker-b.log").read_text()


@pytest.mark.parametrize(
    ("number", "code"),
    [
        pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow),
        (signal.SIGTERM, 0),
        pytest.param(signal.SIGKILL, -signal.SIGKILL, marks=pytest.mark.slow),
    ],
)
def test_up_ends_with_all_its_processes(
    tmp_path: Path, number: signal.Signals, code: int, watch: Watch, processes_of: ProcessesOf
) -> None:
    command = ["up", "-p", "0", "--brokers", "1", "--dir", str(tmp_path / "data"), "--ready-json"]
    with subprocess.Popen(
        [sys.executable, "-m", "rewindmq", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        ready = json.loads(process.stdout.readline())
        assert (ready["ready"], ready["pid"], ready["directory"]) == ("cluster", process.pid, command[6])
        watched = watch([ready["namesrv"]["pid"], ready["brokers"]["broker-a"]["pid"]])
        process.send_signal(number)
        assert process.wait(WAIT_SECONDS) == code
        assert process.stderr.read() == ""
    watched.wait_gone()
    assert processes_of(tmp_path) == []


def test_up_prints_a_table_and_reports_a_process_that_ended(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "rewindmq", "up", "-p", "0", "--brokers", "1", "--dir", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        lines = [process.stdout.readline().rstrip("\n") for _ in range(6)]
        assert lines[0].split() == ["process", "address", "pid", "log"]
        (_, namesrv, _, _), (broker, _, pid, log) = lines[1].split(), lines[2].split()
        assert lines[3:] == ["", f"export NAMESRV_ADDR={namesrv}", "ready; Ctrl-C stops all processes"]
        os.kill(int(pid), signal.SIGKILL)
        assert process.stderr.readline() == f"rewindmq up: {broker} has ended, see {log}\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_SECONDS) == 130


def test_up_with_a_port_in_use_is_one_line_and_leaves_nothing(
    tmp_path: Path, processes_of: ProcessesOf
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = subprocess.run(
            [sys.executable, "-m", "rewindmq", "up", "-p", str(port), "--dir", str(tmp_path)],
            capture_output=True,
            text=True,
            timeout=WAIT_SECONDS,
        )
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == (
        "rewindmq up: namesrv did not start (exit code 1): "
        f"rewindmq namesrv: cannot listen on 127.0.0.1:{port}: Address already in use\n"
    )
    assert processes_of(tmp_path) == []


async def configurations(addresses: list[str]) -> list[dict[str, str]]:
    async with AdminClient("127.0.0.1:1") as admin:
        return [await admin.brokers.get_broker_config(address) for address in addresses]


def test_up_sets_keys_of_all_brokers(tmp_path: Path) -> None:
    settings = ["--set", "resetMode=server", "--set", "regionId = x=y ", "--set", "resetMode=fenced"]
    command = ["up", "-p", "0", "--dir", str(tmp_path), "--ready-json", *settings]
    with subprocess.Popen(
        [sys.executable, "-m", "rewindmq", *command], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            ready = json.loads(process.stdout.readline())
            addresses = [broker["address"] for broker in ready["brokers"].values()]
            tables = asyncio.run(configurations(addresses))
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_SECONDS) == 130
    assert [(table["resetMode"], table["regionId"]) for table in tables] == [("fenced", "x=y")] * 2


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("resetMode", "argument --set: must be KEY=VALUE, not 'resetMode'"),
        ("=server", "argument --set: must be KEY=VALUE, not '=server'"),
        ("#resetMode=server", "argument --set: must be KEY=VALUE, not '#resetMode=server'"),
        ("brokerName x=y", "argument --set: must be KEY=VALUE, not 'brokerName x=y'"),
        ("listenPort=1", "argument --set: listenPort is set by --broker-port"),
        ("haListenPort=1", "argument --set: haListenPort is set by each broker, to any free port"),
    ],
)
def test_up_refuses_a_bad_setting(capsys: pytest.CaptureFixture[str], setting: str, words: str) -> None:
    with pytest.raises(SystemExit) as refused:
        main(["up", "-p", "0", "--set", setting])
    assert refused.value.code == 2
    assert words in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("resetmode=server", "there is no key resetmode, did you mean resetMode?"),
        ("resetMode=other", "resetMode = 'other': must be one of classic, server, fenced"),
        ("zzz=1", "there is no key zzz"),
        ("store=1", "there is no key store"),
    ],
)
def test_a_broker_of_a_cluster_refuses_a_bad_line_of_broker_conf(
    tmp_path: Path, line: str, words: str
) -> None:
    path = tmp_path / "broker.conf"
    path.write_text(line + "\n")
    with pytest.raises(ConfigError) as refused:
        read_broker_config(path, is_strict=True)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_up_names_a_setting_that_a_broker_refuses_in_one_line(
    tmp_path: Path, processes_of: ProcessesOf
) -> None:
    command = ["up", "-p", "0", "--brokers", "1", "--dir", str(tmp_path), "--set", "resetmode=server"]
    result = subprocess.run(
        [sys.executable, "-m", "rewindmq", *command], capture_output=True, text=True, timeout=WAIT_SECONDS
    )
    assert (result.returncode, result.stdout) == (1, "")
    (line,) = result.stderr.splitlines()
    assert "there is no key resetmode, did you mean resetMode?" in line
    assert processes_of(tmp_path) == []


def test_up_refuses_a_file_as_directory(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    result = subprocess.run(
        [sys.executable, "-m", "rewindmq", "up", "-p", "0", "--dir", str(blocker)],
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
    )
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == f"rewindmq up: {blocker}: File exists\n"


def test_up_with_a_host_that_other_machines_reach_needs_permission(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """192.0.2.1 is an address that no machine has."""
    assert main(["up", "-p", "0", "--dir", str(tmp_path / "data"), "--host", "192.0.2.1"]) == 1
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    assert errors.startswith("rewindmq up: '192.0.2.1' is not a loopback address")
    assert "pass --allow-open-access to allow that" in errors
    assert not (tmp_path / "data").exists()


def test_a_cluster_passes_the_permission_to_all_processes(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="pass allow_open_access=True"):
        LocalCluster(brokers=1, directory=tmp_path, host="192.0.2.1").start()
    with pytest.raises(ClusterError, match=r"cannot listen on 192\.0\.2\.1"):
        LocalCluster(brokers=1, directory=tmp_path, host="192.0.2.1", allow_open_access=True).start()
    assert "allowOpenAccess=true" in (tmp_path / "broker-a" / "broker.conf").read_text()
