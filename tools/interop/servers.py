"""The clusters that the suite runs clients against: RewindMQ's, and RocketMQ's as the reference.

Both kinds have the same interface: a name server, one master ``broker-a``, a store, and processes that can be
stopped, killed and started again.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Final, Protocol, Self

from rewindmq import LocalCluster
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.profile import Profile
from tools.interop.raw import ask
from tools.interop.toolchains import server_jars, tool
from tools.interop.turns import take_turn

BROKER: Final = "broker-a"
START_SECONDS: Final = 240.0
_STOP_SECONDS: Final = 30.0
_ASK_SECONDS: Final = 0.1
_PORTS: Final = range(20_000, 30_000)
_START_TRIES: Final = 3

# Java 17 needs these options for releases written for Java 8.
JAVA_17: Final = (
    "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED",
    # Without this 4.9.7 cannot unmap files: it does not stop cleanly and does not start after a crash.
    "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
)

NO_CONFIG: Final[Mapping[str, object]] = MappingProxyType({})
# For processes that live a few minutes: no optimising compiler, no collector threads.
_SHORT_LIVED: Final = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
# Without this option the limit is the heap's.
_DIRECT_MEGABYTES: Final = 1_024
# For both kinds of broker: what a laptop needs, and no refusals while the machine is busy.
COMMON_CONFIG: Final[Mapping[str, object]] = MappingProxyType(
    {
        "brokerClusterName": "DefaultCluster",
        "brokerName": BROKER,
        "brokerId": 0,
        "brokerIP1": "127.0.0.1",
        "enablePropertyFilter": "true",
        "diskMaxUsedSpaceRatio": 95,
    }
)
_REAL_CONFIG: Final[Mapping[str, object]] = MappingProxyType(
    {
        "mappedFileSizeCommitLog": 64 << 20,
        "mappedFileSizeConsumeQueue": 300_000 * 20,
        "waitTimeMillsInSendQueue": 10_000,
        "osPageCacheBusyTimeOutMills": 10_000,
        "timerWheelEnable": "false",
        # Each thread that stores messages keeps a buffer of 4 MiB outside the heap. With RocketMQ's defaults
        # of 12 and 20 threads they exceed a small JVM's limit together, and the last gets no buffer.
        "endTransactionThreadPoolNums": 2,
        "processReplyMessageThreadPoolNums": 2,
    }
)
# With this option a RocketMQ broker stores commits in the order of their arrival. With its default of 32
# threads it may store a consumer's last commit after a reset that follows the consumer's leaving. A query may
# also overtake a commit (docs/race/R9b.md).
ORDERED_COMMITS: Final[Mapping[str, object]] = MappingProxyType({"consumerManageThreadPoolNums": 1})
_LOGBACK: Final = """<configuration>
  <appender name="warnings" class="ch.qos.logback.core.FileAppender">
    <file>{log}</file>
    <encoder><pattern>%d{{HH:mm:ss.SSS}} %p %t %c{{0}} - %m%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="warnings"/></root>
</configuration>
"""
_LOG_LINES: Final = 30


class Server(Protocol):
    """A running cluster with one master.

    Attributes:
        release: RocketMQ's release; for RewindMQ the profile.
    """

    name: str
    release: str
    is_real: bool

    @property
    def namesrv_address(self) -> str: ...

    @property
    def broker_address(self) -> str: ...

    @property
    def store_path(self) -> Path: ...

    def stop_broker(self) -> None:
        """Stop the broker cleanly, by SIGTERM."""

    def kill_broker(self) -> None:
        """Kill the broker by SIGKILL."""

    def start_broker(self) -> None:
        """Start the broker again, with its store and port; return when it serves."""

    def note_logs(self, error: BaseException) -> None:
        """Attach the last warnings of name server and broker to an error, before ``close`` removes them."""

    def close(self) -> None:
        """Stop broker and name server, and remove a temporary store."""


class RewindMQServer:
    """RewindMQ's name server and broker, as ``rewindmq up`` starts them.

    Args:
        profile: the profile of both: ``v42``, ``v49`` or ``v53``.
        config: more keys of ``broker.conf``.
    """

    is_real = False

    def __init__(
        self, profile: Profile, directory: Path | None = None, config: Mapping[str, object] = NO_CONFIG
    ) -> None:
        self.name = f"rewindmq-{profile.value}"
        self.release = profile.value
        self._cluster = LocalCluster(
            brokers=1,
            profile=profile,
            directory=directory,
            broker_config={
                key: value
                for key, value in {**COMMON_CONFIG, **config}.items()
                if key not in ("brokerName", "brokerId", "brokerIP1", "brokerClusterName")
            },
        )
        self._cluster.start()

    @property
    def namesrv_address(self) -> str:
        return self._cluster.namesrv_address

    @property
    def broker_address(self) -> str:
        return self._cluster.brokers[BROKER].address

    @property
    def store_path(self) -> Path:
        return self._cluster.brokers[BROKER].store_path

    @property
    def broker_pid(self) -> int:
        return self._cluster.brokers[BROKER].pid

    def stop_broker(self) -> None:
        self._cluster.stop(BROKER)

    def kill_broker(self) -> None:
        self._cluster.kill(BROKER)

    def start_broker(self) -> None:
        self._cluster.restart(BROKER)

    def note_logs(self, error: BaseException) -> None:
        self._cluster.note_logs(error)

    def close(self) -> None:
        self._cluster.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class JavaProcess:
    """A JVM that prints ``boot success`` to standard output when it serves.

    Args:
        heap: the maximum heap, megabytes.
    """

    def __init__(
        self, jars: Path, main: str, arguments: list[str], home: Path, log: Path, *, heap: int = 256
    ) -> None:
        take_turn()
        self._log = log
        # Set also at the end of its output.
        self._served = threading.Event()
        self._has_served = False
        log.parent.mkdir(parents=True, exist_ok=True)
        command = [tool("java"), f"-Xms{heap // 4}m", f"-Xmx{heap}m", *JAVA_17, *_SHORT_LIVED]
        command.append(f"-XX:MaxDirectMemorySize={_DIRECT_MEGABYTES}m")
        # Without this the process writes its logs to ~/logs.
        command += [f"-Duser.home={home}", "-cp", f"{jars}/*", main, *arguments]
        self._output = log.open("ab")
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=os.environ | {"ROCKETMQ_HOME": str(home), "JAVA_TOOL_OPTIONS": ""},
            process_group=0,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._output.write(line)
            self._output.flush()
            if b"boot success" in line:
                self._has_served = True
                self._served.set()
        self._served.set()

    def wait_ready(self, timeout: float = START_SECONDS) -> bool:
        """Return True once the process serves, False if it ended first.

        Raises:
            TimeoutError: neither happened; the process was killed.
        """
        if not self._served.wait(timeout):
            self.kill()
            raise TimeoutError(f"{self._log.stem} did not serve in {timeout:g} s:\n{self.log_tail()}")
        return self._has_served

    def log_tail(self) -> str:
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-20:])

    def stop(self) -> None:
        """Stop the process by SIGTERM, as ``mqshutdown`` does."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        if self.process.poll() is None:
            self.process.send_signal(number)
            try:
                self.process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._reader.join()
        if self.process.stdout is not None:
            self.process.stdout.close()
        self._output.close()


class RocketMQNamesrv:
    """A RocketMQ name server at a free port."""

    def __init__(self, version: str, directory: Path) -> None:
        home = rocketmq_home(directory)
        for _ in range(_START_TRIES):
            port = free_port(0)
            config = directory / "namesrv.conf"
            config.write_text(f"listenPort={port}\nrocketmqHome={home}\nkvConfigPath={directory}/kv.json\n")
            arguments = ["-c", str(config)]
            main = "org.apache.rocketmq.namesrv.NamesrvStartup"
            log = directory / "namesrv.log"
            self.process = JavaProcess(server_jars(version), main, arguments, home, log, heap=128)
            if self.process.wait_ready():
                self.address = f"127.0.0.1:{port}"
                return
            self.process.kill()
        end = log.read_text(errors="replace")[-2000:]
        raise RuntimeError(f"RocketMQ's name server did not start:\n{end}")

    def stop(self) -> None:
        self.process.stop()

    def kill(self) -> None:
        self.process.kill()


class RocketMQBroker:
    """A RocketMQ broker that registers at the given name server of either kind.

    Args:
        store: its ``storePathRootDir``; may contain a store already.
        config: more keys of ``broker.conf``, which override the common keys.
    """

    def __init__(
        self,
        version: str,
        namesrv: str,
        directory: Path,
        store: Path | None = None,
        config: Mapping[str, object] = NO_CONFIG,
    ) -> None:
        self.version = version
        self.store_path = store or directory / "store"
        self._namesrv = namesrv
        self._directory = directory
        self._home = rocketmq_home(directory)
        self._config = {**COMMON_CONFIG, **_REAL_CONFIG, **config}
        self.port = 0
        self.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        return self.process.process.pid

    def start(self) -> None:
        """Start (again) with the existing store, at the port of the first start."""
        for _ in range(_START_TRIES):
            port = self.port or free_port(-2, 0, 1)
            config = self._directory / "broker.conf"
            keys = self._config | {
                "namesrvAddr": self._namesrv,
                "listenPort": port,
                "storePathRootDir": self.store_path,
                "storePathCommitLog": self.store_path / "commitlog",
                "rocketmqHome": self._home,
            }
            config.write_text("".join(f"{key}={value}\n" for key, value in keys.items()))
            main = "org.apache.rocketmq.broker.BrokerStartup"
            log = self._directory / "broker.log"
            self.process = JavaProcess(server_jars(self.version), main, ["-c", str(config)], self._home, log)
            if self.process.wait_ready():
                self.port = port
                try:
                    self._wait_registered()
                except BaseException:
                    self.process.kill()
                    raise
                return
            self.process.kill()
        raise RuntimeError(f"RocketMQ's broker did not start:\n{log.read_text(errors='replace')[-2000:]}")

    def _wait_registered(self) -> None:
        # 5.x registers from another thread.
        for _ in range(round(START_SECONDS / _ASK_SECONDS)):
            clusters = ask(self._namesrv, RemotingCommand(code=RequestCode.GET_BROKER_CLUSTER_INFO)).body
            if isinstance(clusters, bytes) and self.address.encode() in clusters:
                return
            time.sleep(_ASK_SECONDS)
        raise TimeoutError(f"RocketMQ's broker did not register in {START_SECONDS:g} s")

    def stop(self) -> None:
        self.process.stop()

    def kill(self) -> None:
        self.process.kill()


class RocketMQServer:
    """A RocketMQ name server and broker of one release.

    Args:
        version: the release as published.
        config: more keys of ``broker.conf``.
    """

    is_real = True

    def __init__(
        self, version: str, directory: Path | None = None, config: Mapping[str, object] = NO_CONFIG
    ) -> None:
        self.name = f"rocketmq-{version}"
        self.release = version
        self._is_temporary = directory is None
        self._directory = directory or Path(tempfile.mkdtemp(prefix="rewindmq-interop-"))
        try:
            self.namesrv = RocketMQNamesrv(version, self._directory)
            try:
                self.broker = RocketMQBroker(version, self.namesrv.address, self._directory, None, config)
            except BaseException:
                self.namesrv.stop()
                raise
        except BaseException:
            self._remove()
            raise

    @property
    def namesrv_address(self) -> str:
        return self.namesrv.address

    @property
    def broker_address(self) -> str:
        return self.broker.address

    @property
    def broker_pid(self) -> int:
        return self.broker.pid

    @property
    def store_path(self) -> Path:
        return self.broker.store_path

    def stop_broker(self) -> None:
        self.broker.stop()

    def kill_broker(self) -> None:
        self.broker.kill()

    def start_broker(self) -> None:
        self.broker.start()

    def note_logs(self, error: BaseException) -> None:
        for log in sorted((self._directory / "home").glob("*.log")):
            lines = log.read_text(errors="replace").splitlines()[-_LOG_LINES:]
            error.add_note(f"the warnings of {self.name}'s {log.stem} end:\n  " + "\n  ".join(lines))

    def close(self) -> None:
        """Kill both: no test reads what they leave, and a RocketMQ broker takes 10 s to stop cleanly."""
        try:
            self.broker.kill()
        finally:
            self.namesrv.kill()
            self._remove()

    def _remove(self) -> None:
        if self._is_temporary:
            shutil.rmtree(self._directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def rocketmq_home(directory: Path) -> Path:
    """Create a ROCKETMQ_HOME in ``directory`` whose processes log their warnings only, to ``home/*.log``."""
    home = directory / "home"
    conf = home / "conf"
    conf.mkdir(parents=True, exist_ok=True)
    for part in ("namesrv", "broker", "tools", "client", "proxy"):
        for name in (f"logback_{part}", f"rmq.{part}.logback"):
            (conf / f"{name}.xml").write_text(_LOGBACK.format(log=home / f"{part}.log"))
    return home


def free_port(*around: int) -> int:
    """Return a port that is free now, together with the ports at these distances from it.

    RocketMQ cannot choose a free port itself. Another process may take the port first, so callers try again.
    """
    while True:
        port = random.choice(_PORTS)
        try:
            for step in around:
                with socket.socket() as probe:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    probe.bind(("127.0.0.1", port + step))
        except OSError:
            continue
        return port
