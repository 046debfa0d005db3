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
from tools.interop.versions import SERVER_4, SERVER_5

ROCKETMQ: Final = f"RocketMQ {SERVER_4}"
ROCKETMQ_5: Final = f"RocketMQ {SERVER_5}"
REWINDMQ: Final = "RewindMQ"
BROKER: Final = "broker-a"
_START_SECONDS: Final = 120.0
_STOP_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.01
_START_TRIES: Final = 3

# The options of runbroker.sh and runserver.sh, except heap sizes (8 and 4 GB there) and GC log files.
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
# Starts and idle memory: a small heap without pre-touched pages favours RocketMQ. Under load it gets the
# pre-touched heap that its scripts ask for.
IDLE_HEAP: Final = ("-Xms512m", "-Xmx512m")
LOADED_HEAP: Final = ("-Xms1g", "-Xmx1g", "-XX:+AlwaysPreTouch")

# The time-outs keep the broker from refusing sends on a busy machine. All other keys have their defaults.
_ROCKETMQ_CONFIG: Final = {
    "brokerClusterName": "DefaultCluster",
    "brokerName": BROKER,
    "brokerId": 0,
    "brokerIP1": "127.0.0.1",
    "flushDiskType": "ASYNC_FLUSH",
    "diskMaxUsedSpaceRatio": 95,
    "waitTimeMillsInSendQueue": 10_000,
    "osPageCacheBusyTimeOutMills": 10_000,
}


class StartError(Exception):
    """A cluster did not start."""


@dataclass(frozen=True, slots=True)
class ComparedCluster:
    """A running cluster.

    Attributes:
        broker: the broker's address.
        start_seconds: seconds from the command until the broker is registered at the name server.
        others: processes that only watch the name server and the broker.
    """

    name: str
    namesrv: str
    namesrv_pid: int
    broker: str
    broker_pid: int
    start_seconds: float
    others: tuple[int, ...] = ()

    def suspend(self) -> None:
        """Stop the processes with SIGSTOP, so that they take no processor time from the other cluster."""
        for pid in (self.broker_pid, self.namesrv_pid):
            os.kill(pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Continue the processes with SIGCONT."""
        for pid in (self.namesrv_pid, self.broker_pid):
            os.kill(pid, signal.SIGCONT)


@contextmanager
def rocketmq_cluster(
    heap: tuple[str, ...], namesrv_heap: tuple[str, ...] = NAMESRV_HEAP, release: str = SERVER_4
) -> Iterator[ComparedCluster]:
    """Start RocketMQ's name server and, as soon as it serves, the broker.

    Args:
        heap: Java options for the broker's heap.
        namesrv_heap: likewise for the name server's.
        release: of both.
    """
    jars = server_jars(release)
    with tempfile.TemporaryDirectory(prefix="rewindmq-bench-", ignore_cleanup_errors=True) as name:
        for attempt in range(_START_TRIES):
            processes: list[subprocess.Popen[bytes]] = []
            directory = Path(name) / str(attempt)
            directory.mkdir()
            try:
                cluster = _start_rocketmq(
                    f"RocketMQ {release}", jars, directory, (namesrv_heap, heap), processes
                )
                if cluster is not None:
                    yield cluster
                    return
            finally:
                _end(processes)
            if attempt + 1 < _START_TRIES:
                shutil.rmtree(directory)
        text = "".join(path.read_text(errors="replace")[-1000:] for path in sorted(directory.glob("*.log")))
        raise StartError(f"RocketMQ {release} did not start:\n{text}")


def _start_rocketmq(
    name: str,
    jars: Path,
    directory: Path,
    heaps: tuple[tuple[str, ...], tuple[str, ...]],
    processes: list[subprocess.Popen[bytes]],
) -> ComparedCluster | None:
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
    keys = _ROCKETMQ_CONFIG | places | {"namesrvAddr": address, "listenPort": broker}
    _write_keys(directory / "broker.conf", keys)
    started = time.perf_counter()
    deadline = started + _START_SECONDS
    processes.append(_java(jars, "namesrv", "namesrv.NamesrvStartup", heaps[0], directory, home))
    # A broker that does not find the name server tries again only after ten seconds.
    if not _wait(lambda: _cluster_info(address) is not None, name, processes, deadline):
        return None
    processes.append(_java(jars, "broker", "broker.BrokerStartup", heaps[1], directory, home))
    listening = f"127.0.0.1:{broker}"
    if not _wait(lambda: _is_registered(address, listening), name, processes, deadline):
        return None
    seconds = time.perf_counter() - started
    return ComparedCluster(name, address, processes[0].pid, listening, processes[1].pid, seconds)


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
    """Wait for a condition; return False if a process ended first."""
    while not is_so():
        if any(process.poll() is not None for process in processes):
            return False
        if time.perf_counter() > deadline:
            raise StartError(f"{who} did not serve in {_START_SECONDS:g} s")
        time.sleep(_POLL_SECONDS)
    return True


@contextmanager
def rewindmq_cluster(*options: str) -> Iterator[ComparedCluster]:
    """Start RewindMQ as ``rewindmq up --brokers 1`` does, with more options of that command."""
    with tempfile.TemporaryDirectory(prefix="rewindmq-bench-", ignore_cleanup_errors=True) as directory:
        command = [sys.executable, "-m", "rewindmq", "up", "--brokers", "1", "--port", "0", *options]
        started = time.perf_counter()
        process = subprocess.Popen([*command, "--dir", directory, "--ready-json"], stdout=subprocess.PIPE)
        try:
            assert process.stdout is not None
            line = next((line for line in process.stdout if line.startswith(b"{")), None)
            if line is None:
                raise StartError(f"{REWINDMQ} did not start")
            deadline = started + _START_SECONDS
            ready = json.loads(line)
            address, broker = ready["namesrv"]["address"], ready["brokers"][BROKER]
            if not _wait(lambda: _is_registered(address, broker["address"]), REWINDMQ, [process], deadline):
                raise StartError(f"{REWINDMQ} ended during its start")
            seconds = time.perf_counter() - started
            yield ComparedCluster(
                REWINDMQ,
                address,
                ready["namesrv"]["pid"],
                broker["address"],
                broker["pid"],
                seconds,
                (process.pid,),
            )
        finally:
            _end([process])


def _is_registered(namesrv: str, broker: str) -> bool:
    return broker.encode() in (_cluster_info(namesrv) or b"")


def _cluster_info(namesrv: str) -> bytes | None:
    """Return the name server's list of brokers, or None if it does not serve yet."""
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
