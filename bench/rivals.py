"""The two clusters of a comparison, RocketMQ and RewindMQ, each with one name server and one broker."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from tools.interop.raw import ask
from tools.interop.servers import JAVA_17, free_port, rocketmq_home
from tools.interop.toolchains import server_jars, tool
from tools.interop.versions import SERVER_4

REAL: Final = f"RocketMQ {SERVER_4}"
OURS: Final = "RewindMQ"
_BROKER: Final = "broker-a"
_START_SECONDS: Final = 120.0
_STOP_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.01
_START_TRIES: Final = 3

# What runbroker.sh and runserver.sh say, but for the sizes: 8 and 4 GB there. Files of GC logs are left out.
_G1: Final = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:G1HeapRegionSize=16m",
    "-XX:G1ReservePercent=25",
    "-XX:InitiatingHeapOccupancyPercent=30",
    "-XX:SoftRefLRUPolicyMSPerMB=0",
    "-XX:-OmitStackTraceInFastThrow",
    "-XX:-UseLargePages",
)
NAMESRV_HEAP: Final = ("-Xms256m", "-Xmx256m")
# Small, and no page of it touched before it is used: what favours the real broker where starts and idle
# memory are compared. With a load it gets what it likes to have.
IDLE_HEAP: Final = ("-Xms512m", "-Xmx512m")
LOADED_HEAP: Final = ("-Xms1g", "-Xmx1g", "-XX:+AlwaysPreTouch")

# Neither refuses what a busy machine is late with; everything else is as it comes.
_REAL_CONFIG: Final = {
    "brokerClusterName": "DefaultCluster",
    "brokerName": _BROKER,
    "brokerId": 0,
    "brokerIP1": "127.0.0.1",
    "flushDiskType": "ASYNC_FLUSH",
    "diskMaxUsedSpaceRatio": 95,
    "waitTimeMillsInSendQueue": 10_000,
    "osPageCacheBusyTimeOutMills": 10_000,
}


class StartError(Exception):
    """A cluster did not come up."""


@dataclass(frozen=True, slots=True)
class Rival:
    """A running cluster.

    Attributes:
        start_seconds: from the command until the broker is in the name server's list.
        others: processes that only watch over these two.
    """

    name: str
    namesrv: str
    namesrv_pid: int
    broker_pid: int
    start_seconds: float
    others: tuple[int, ...] = ()

    def rest(self) -> None:
        """Stand still, so that it takes nothing from the other one."""
        for pid in (self.broker_pid, self.namesrv_pid):
            os.kill(pid, signal.SIGSTOP)

    def go_on(self) -> None:
        for pid in (self.namesrv_pid, self.broker_pid):
            os.kill(pid, signal.SIGCONT)


@contextmanager
def real_rocketmq(heap: tuple[str, ...]) -> Iterator[Rival]:
    """The real name server and, as soon as it answers, the broker.

    Args:
        heap: Java's options for the broker's.
    """
    jars = server_jars(SERVER_4)
    with tempfile.TemporaryDirectory(prefix="rewindmq-bench-", ignore_cleanup_errors=True) as name:
        for attempt in range(_START_TRIES):
            processes: list[subprocess.Popen[bytes]] = []
            directory = Path(name) / str(attempt)
            directory.mkdir()
            try:
                rival = _start_real(jars, directory, heap, processes)
                if rival is not None:
                    yield rival
                    return
            finally:
                _end(processes)
            if attempt + 1 < _START_TRIES:
                shutil.rmtree(directory)
        text = "".join(path.read_text(errors="replace")[-1000:] for path in sorted(directory.glob("*.log")))
        raise StartError(f"the real RocketMQ did not start:\n{text}")


def _start_real(
    jars: Path, directory: Path, heap: tuple[str, ...], processes: list[subprocess.Popen[bytes]]
) -> Rival | None:
    """Return the cluster; None if a process ended because another process had taken its port."""
    namesrv, broker = free_port(0), free_port(-2, 0, 1)
    home = rocketmq_home(directory)
    _write_keys(
        directory / "namesrv.conf",
        {"listenPort": namesrv, "rocketmqHome": home, "kvConfigPath": directory / "kv.json"},
    )
    store = directory / "store"
    places = {"storePathRootDir": store, "storePathCommitLog": store / "commitlog", "rocketmqHome": home}
    address = f"127.0.0.1:{namesrv}"
    keys = _REAL_CONFIG | places | {"namesrvAddr": address, "listenPort": broker}
    _write_keys(directory / "broker.conf", keys)
    started = time.perf_counter()
    deadline = started + _START_SECONDS
    processes.append(_java(jars, "namesrv", "namesrv.NamesrvStartup", NAMESRV_HEAP, directory, home))
    # A broker that finds no name server yet tries again after ten seconds.
    if not _wait(lambda: _cluster_info(address) is not None, REAL, processes, deadline):
        return None
    processes.append(_java(jars, "broker", "broker.BrokerStartup", heap, directory, home))
    if not _wait(lambda: _is_registered(address, f"127.0.0.1:{broker}"), REAL, processes, deadline):
        return None
    seconds = time.perf_counter() - started
    return Rival(REAL, address, processes[0].pid, processes[1].pid, seconds)


def _java(
    jars: Path, kind: str, main: str, heap: tuple[str, ...], directory: Path, home: Path
) -> subprocess.Popen[bytes]:
    options = [*_G1, *JAVA_17, *heap, f"-Duser.home={home}", "-cp", f"{jars}/*"]
    with (directory / f"{kind}.log").open("wb") as log:
        return subprocess.Popen(
            [tool("java"), *options, f"org.apache.rocketmq.{main}", "-c", str(directory / f"{kind}.conf")],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=os.environ | {"ROCKETMQ_HOME": str(home), "JAVA_TOOL_OPTIONS": ""},
        )


def _wait(
    is_so: Callable[[], bool], who: str, processes: Sequence[subprocess.Popen[bytes]], deadline: float
) -> bool:
    """Whether it came true; False when a process ended first."""
    while not is_so():
        if any(process.poll() is not None for process in processes):
            return False
        if time.perf_counter() > deadline:
            raise StartError(f"{who} did not serve in {_START_SECONDS:g} s")
        time.sleep(_POLL_SECONDS)
    return True


@contextmanager
def rewindmq() -> Iterator[Rival]:
    """Start RewindMQ as ``rewindmq up --brokers 1`` does."""
    with tempfile.TemporaryDirectory(prefix="rewindmq-bench-", ignore_cleanup_errors=True) as directory:
        command = [sys.executable, "-m", "rewindmq", "up", "--brokers", "1", "--port", "0"]
        started = time.perf_counter()
        process = subprocess.Popen([*command, "--dir", directory, "--ready-json"], stdout=subprocess.PIPE)
        try:
            assert process.stdout is not None
            line = next((line for line in process.stdout if line.startswith(b"{")), None)
            if line is None:
                raise StartError("our cluster did not start")
            deadline = started + _START_SECONDS
            ready = json.loads(line)
            address, broker = ready["namesrv"]["address"], ready["brokers"][_BROKER]
            if not _wait(lambda: _is_registered(address, broker["address"]), OURS, [process], deadline):
                raise StartError("our cluster ended while it started")
            seconds = time.perf_counter() - started
            yield Rival(OURS, address, ready["namesrv"]["pid"], broker["pid"], seconds, (process.pid,))
        finally:
            _end([process])


def _is_registered(namesrv: str, broker: str) -> bool:
    return broker.encode() in (_cluster_info(namesrv) or b"")


def _cluster_info(namesrv: str) -> bytes | None:
    """What a name server says of its brokers; None while it says nothing."""
    try:
        body = ask(namesrv, RemotingCommand(code=RequestCode.GET_BROKER_CLUSTER_INFO)).body
    except OSError:
        return None
    return body if isinstance(body, bytes) else b""


def _write_keys(path: Path, keys: dict[str, object]) -> None:
    path.write_text("".join(f"{key}={value}\n" for key, value in keys.items()))


def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    for process in reversed(processes):
        process.send_signal(signal.SIGTERM)
    for process in reversed(processes):
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
