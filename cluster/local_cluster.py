"""One name server and N brokers on this machine, each its own OS process."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Final, Self

import rewindmq
from rewindmq.cluster.async_cluster import AsyncLocalCluster, run_in_thread
from rewindmq.cluster.clients import ClusterClients
from rewindmq.cluster.errors import ClusterError
from rewindmq.cluster.names import (
    CLUSTER,
    MAX_BROKERS,
    MAX_SLAVES,
    NAMESRV,
    broker_names,
    slave_names,
    spread_ports,
)
from rewindmq.cluster.server_process import ServerProcess
from rewindmq.cluster.snapshots.header import FORMAT, LAYOUT_KEYS, STORE_FORMAT, SnapshotHeader
from rewindmq.cluster.snapshots.snapshots import Snapshots
from rewindmq.protocol.config.property_file import format_properties_file
from rewindmq.protocol.files.private import make_private_folder, open_private
from rewindmq.protocol.files.temporary_folder import TemporaryFolder
from rewindmq.protocol.options import parse_choice, refuse_unknown_options
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.address import parse_address
from rewindmq.protocol.remoting.process.open_access import refuse_open_access

# Exceptions that end a block without a failure.
_ORDERLY_ENDS: Final = (KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError)


class LocalCluster(ClusterClients):
    """A name server and brokers, started together as processes of this machine.

    ::

        async with LocalCluster(brokers=1, time_scale=0.05) as cluster:
            async with cluster.producer("my_producer") as producer:
                ...

    Use ``with LocalCluster(brokers=2) as cluster:``, or ``async with ...``, which returns an
    ``AsyncLocalCluster``, or ``start`` and ``close``. The processes stop when the block is left, and when
    this process ends, even by SIGKILL. An error that leaves the block carries the last lines of each
    process's log as notes.

    Args:
        brokers: number of brokers, 1 to 26: broker-a, broker-b, ... Each is a master with its own store.
        slaves: number of slaves of each broker, 0 to 3: broker-a-s1, ... Each is a copy of its master.
        directory: the directory of configurations, stores and logs, kept at the end. The default is a
            temporary directory, removed at the end, or by the next cluster of this user if this process is
            killed.
        namesrv_port: the name server's port; 0 takes any free port.
        broker_port: broker-a's port. Each further broker's is 10 higher, and the slaves follow the masters;
            0 takes any free ports.
        ports: ports of single processes by name (``"namesrv"``, ``"broker-a"``, ...); they win over the two
            options above.
        host: the interface that all processes listen on.
        allow_open_access: ``host`` may be an address that other machines can connect to. There is no TLS and
            no access control.
        time_scale: factor on every scheduled wait of every process and of the cluster's clients.
        profile: the release that all processes and clients imitate: "v42", "v49" (default) or "v53".
        seed: makes the random choices of processes and clients repeatable; None: they differ between runs.
        broker_config: further keys of ``broker.conf``, the same for each broker, such as
            ``{"flushDiskType": "SYNC_FLUSH"}``. An unknown key makes ``start`` fail.
        log_level: the lowest level that the processes log: "debug", "info" (default), "warning" or "error".
        events_directory: each broker appends its events to ``<its name>.jsonl`` there, see
            ``rewindmq broker --events``; None: no broker writes them.
        start_seconds: seconds that each process has to start. The cluster waits for them one after the other.
    """

    @refuse_unknown_options
    def __init__(
        self,
        brokers: int = 2,
        *,
        slaves: int = 0,
        directory: Path | str | None = None,
        namesrv_port: int = 0,
        broker_port: int = 0,
        ports: Mapping[str, int] = MappingProxyType({}),
        host: str = "127.0.0.1",
        allow_open_access: bool = False,
        time_scale: float = 1.0,
        profile: Profile | str = "v49",
        seed: int | None = None,
        broker_config: Mapping[str, object] = MappingProxyType({}),
        log_level: str = "info",
        events_directory: Path | str | None = None,
        start_seconds: float = 30.0,
    ) -> None:
        if not 1 <= brokers <= MAX_BROKERS:
            raise ClusterError(f"brokers must be 1 to {MAX_BROKERS}, not {brokers}")
        if not 0 <= slaves <= MAX_SLAVES:
            raise ClusterError(f"slaves must be 0 to {MAX_SLAVES}, not {slaves}")
        self._broker_names = broker_names(brokers)
        self._slaves = slave_names(brokers, slaves)
        self._directory = None if directory is None else Path(directory).absolute()
        # Set while a cluster without ``directory`` runs.
        self._temporary: TemporaryFolder | None = None
        spread = spread_ports((*self._broker_names, *self._slaves), broker_port)
        self._ports = {NAMESRV: namesrv_port, **spread, **ports}
        self._host = host
        self._allow_open_access = allow_open_access
        self._profile = parse_choice(Profile, profile, "profile", error=ClusterError)
        self._client_options: dict[str, Any] = {"time_scale": time_scale, "profile": self._profile}
        self._broker_config = dict(broker_config)
        self._process_options = ["--time-scale", str(time_scale), "--log-level", log_level]
        if seed is not None:
            self._client_options["seed"] = seed
            self._process_options += ["--seed", str(seed)]
        self._events_directory = None if events_directory is None else Path(events_directory)
        self._start_seconds = start_seconds
        self._processes: dict[str, ServerProcess] = {}
        self._launching = threading.Lock()
        self._aborted = False
        # One command to a process at a time, because its answers have one reader.
        self._commanding = threading.Lock()
        self._full_disks: set[str] = set()
        self._ahead_ms = 0

    @property
    def directory(self) -> Path:
        """The directory of configurations, stores and logs.

        Raises:
            ClusterError: the directory is temporary and the cluster is not running.
        """
        if self._directory is None:
            raise ClusterError("the cluster is not running")
        return self._directory

    @property
    def namesrv(self) -> ServerProcess:
        """The name server's process."""
        return self._process(NAMESRV)

    @property
    def namesrv_address(self) -> str:
        """The value that clients take as NAMESRV_ADDR, ``host:port``."""
        return self.namesrv.address

    @property
    def client_options(self) -> Mapping[str, Any]:
        """The options that each client inherits from the cluster."""
        return self._client_options

    @property
    def brokers(self) -> dict[str, ServerProcess]:
        """The masters' processes by broker name."""
        return {name: self._process(name) for name in self._broker_names}

    @property
    def slaves(self) -> dict[str, ServerProcess]:
        """The slaves' processes by name: ``broker-a-s1`` is the first slave of ``broker-a``."""
        return {name: self._process(name) for name in self._slaves}

    def start(self) -> None:
        """Start all processes and wait until each serves; a failed start stops them all again.

        All interpreters load at the same time. The brokers wait on their standard input for the name server's
        address.

        Raises:
            ClusterError: a process ended or did not serve in time; the text is one line.
            ConfigError: ``host`` is not loopback, and ``allow_open_access`` is False.
            OSError: the directory cannot be written.
        """
        assert not self._processes, "started already"
        refuse_open_access(
            self._host, allow_open_access=self._allow_open_access, remedy="pass allow_open_access=True"
        )
        try:
            self._prepare()
            self._start_all()
        except BaseException:
            self._kill_all()
            self.close()
            raise

    def _start_all(self) -> None:
        """Start all processes, at their ports if they ran before, and wait until they serve."""
        self._launch(self.namesrv, self._namesrv_arguments(_port(self.namesrv) or self._ports[NAMESRV]))
        for name, broker in (self.brokers | self.slaves).items():
            place = ["-p", str(_port(broker))] if broker.address else []
            self._launch(broker, [*self._broker_arguments(name, "-"), *place])
        self.namesrv.wait_ready(self._start_seconds)
        # A slave learns its master's address when it registers, so the masters register first.
        for brokers in (self.brokers, self.slaves):
            for broker in brokers.values():
                broker.write_line(self.namesrv_address)
            for name, broker in brokers.items():
                broker.wait_ready(self._start_seconds)
                self._pretend_again(name, broker)

    def _kill_all(self) -> None:
        for process in self._processes.values():
            process.abort()
        for process in self._processes.values():
            process.kill()

    def close(self) -> None:
        """Stop all processes, brokers first, and remove a temporary directory. A second call does nothing."""
        processes = list(self._processes.values())
        # Brokers unregister at the name server, so it stops last.
        for stopping in (processes[1:], processes[:1]):
            for process in stopping:
                process.begin_stop()
            for process in stopping:
                process.finish_stop()
        self._processes.clear()
        if self._temporary is not None:
            self._temporary.remove()
            self._temporary = self._directory = None

    def kill(self, name: str) -> None:
        """Kill one process by its name (``"namesrv"``, ``"broker-a"``, ...) with SIGKILL."""
        self._process(name).kill()

    def pause(self, name: str) -> None:
        """Pause one process with SIGSTOP: it keeps its connections, and answers nothing until ``resume``."""
        self._process(name).pause()

    def resume(self, name: str) -> None:
        """Let a paused process continue."""
        self._process(name).resume()

    def stop(self, name: str) -> None:
        """Stop one process in order and wait until it has ended."""
        process = self._process(name)
        process.begin_stop()
        process.finish_stop()

    def restart(self, name: str) -> None:
        """Stop a process if it still runs, and start it again with its store and port.

        Raises:
            ClusterError: the process did not start, and was killed.
        """
        process = self._process(name)
        self.stop(name)
        port = _port(process)
        if name == NAMESRV:
            arguments = self._namesrv_arguments(port)
        else:
            arguments = [*self._broker_arguments(name, self.namesrv_address), "-p", str(port)]
        try:
            self._launch(process, arguments)
            process.wait_ready(self._start_seconds)
            self._pretend_again(name, process)
        except BaseException:
            process.kill()
            raise

    def set_disk_full(self, name: str, is_full: bool) -> None:
        """Let a broker act as if its disk were full, or as its disk is; return once it does.

        It then refuses messages as RocketMQ's broker does above ``diskSpaceWarningLevelRatio``, also after a
        restart.

        Raises:
            ClusterError: it is no master of this cluster, or does not run or answer.
        """
        if name not in self._broker_names:
            known = ", ".join(self._broker_names)
            raise ClusterError(f"only a master's disk can be full: {known}; not that of {name!r}")
        if is_full or self._process(name).is_running:
            self._command(name, lambda process: process.set_disk_full(is_full))
        (self._full_disks.add if is_full else self._full_disks.discard)(name)

    @property
    def ahead_ms(self) -> int:
        """How far the brokers' wall clocks are ahead, in ms."""
        return self._ahead_ms

    def set_clocks_ahead(self, milliseconds: int) -> None:
        """Move every broker's wall clock ahead of the system's; 0 moves it back. Return once it is moved.

        What is due by the new time happens at once: delayed messages, checks of transactions, retention. A
        broker that is down follows when it starts again.

        Raises:
            ClusterError: a process is paused, or does not answer.
        """
        brokers = self.brokers | self.slaves
        if paused := [name for name, process in brokers.items() if process.is_paused]:
            raise ClusterError(f"{', '.join(paused)} is paused and has no clock: resume it before")
        self._ahead_ms = milliseconds
        for name, process in brokers.items():
            if process.is_running:
                self._command(name, lambda process: process.set_clock_ahead(milliseconds))

    def _command(self, name: str, command: Callable[[ServerProcess], None]) -> None:
        process = self._process(name)
        if not process.is_running or process.is_paused:
            raise ClusterError(f"{name} {'is paused' if process.is_running else 'is not running'}")
        with self._commanding:
            command(process)

    def _pretend_again(self, name: str, process: ServerProcess) -> None:
        """Give a process that has started what the cluster pretends."""
        with self._commanding:
            if name in self._full_disks:
                process.set_disk_full(True)
            if self._ahead_ms and name != NAMESRV:
                process.set_clock_ahead(self._ahead_ms)

    def snapshot(self, name: str) -> None:
        """Take a snapshot of the whole cluster; one of the same name is replaced.

        It has messages, offsets, epochs, topics, groups, delayed and half messages, and the name server's KV
        configuration. It is of one moment for all brokers: they are frozen while it is taken. A snapshot is a
        folder in the cluster's directory. Files that never change again are links, so it takes milliseconds.

        Raises:
            ClusterError: the name is invalid, or a process does not run or answer, for example because it is
                paused.
            OSError: the disk fails.
        """
        with self._commanding:
            self._snapshots.take(name, self._running_processes(), self._snapshot_header())

    def restore(self, name: str) -> None:
        """Put the cluster back to the state of a snapshot, and wait until all processes serve and registered.

        The processes are killed, and started again at their ports. Stop consumers before: a consumer that
        runs on would commit its offsets to the restored cluster.

        Raises:
            ClusterError: there is no such snapshot, or a process did not start.
            OSError: the disk fails.
        """
        processes = self._running_processes()
        new, old = (self.directory / f".restore-{what}" for what in ("new", "old"))
        for left in (new, old):
            shutil.rmtree(left, ignore_errors=True)
        try:
            self._snapshots.put_back(name, new, self._snapshot_header())
            make_private_folder(old)
            self._kill_all()
            _replace_folders(
                {process.store_path: (new / each, old / each) for each, process in processes.items()}
            )
            try:
                self._start_all()
            except BaseException:
                self._kill_all()
                raise
        finally:
            for left in (new, old):
                shutil.rmtree(left, ignore_errors=True)

    def delete_snapshot(self, name: str) -> None:
        """Delete a snapshot, if there is one of the name.

        Raises:
            ClusterError: the name is invalid.
        """
        self._snapshots.delete(name)

    def snapshots(self) -> list[str]:
        """Return the names of the cluster's snapshots, sorted."""
        return self._snapshots.names()

    def save_snapshot(self, name: str, path: Path | str) -> None:
        """Write a snapshot to one file, a tar archive.

        Raises:
            ClusterError: there is no such snapshot, or the file cannot be written.
        """
        self._snapshots.save(name, Path(path))

    def load_snapshot(self, name: str, path: Path | str) -> None:
        """Read a file of ``save_snapshot`` as the snapshot ``name``, to be restored.

        Raises:
            ClusterError: the file is no snapshot, of another version, truncated or damaged, or its cluster
                had other brokers, another profile or other file sizes.
            OSError: the disk fails.
        """
        self._snapshots.load(name, Path(path), self._snapshot_header())

    @property
    def _snapshots(self) -> Snapshots:
        return Snapshots(self.directory / "snapshots")

    def _running_processes(self) -> dict[str, ServerProcess]:
        if not self._processes:
            raise ClusterError("the cluster is not running")
        return dict(self._processes)

    def _snapshot_header(self) -> SnapshotHeader:
        """Return what identifies a snapshot of this cluster, without files."""
        layout = {key: str(self._broker_config[key]) for key in LAYOUT_KEYS if key in self._broker_config}
        return SnapshotHeader(
            format=FORMAT,
            store_format=STORE_FORMAT,
            rewindmq=rewindmq.__version__,
            profile=self._profile,
            processes=[NAMESRV, *self._broker_names, *self._slaves],
            layout=layout,
            files=[],
        )

    def abort(self) -> None:
        """Make a ``start`` or ``restart`` that runs in another thread fail at once."""
        with self._launching:
            self._aborted = True
            for process in self._processes.values():
                process.abort()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.note_logs(error)
        self.close()

    async def __aenter__(self) -> AsyncLocalCluster:
        try:
            await run_in_thread(self.start, on_cancel=self.abort)
        except asyncio.CancelledError:
            await run_in_thread(self.close)
            raise
        return AsyncLocalCluster(self)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.note_logs(error)
        await run_in_thread(self.close)

    def note_logs(self, error: BaseException | None) -> None:
        """Attach the end of each process's log to an error, because a temporary directory is then removed."""
        if error is None or isinstance(error, _ORDERLY_ENDS):
            return
        for process in self._processes.values():
            if tail := process.log_tail():
                error.add_note(f"the log of {process.name} ends:\n  " + "\n  ".join(tail))

    def _process(self, name: str) -> ServerProcess:
        process = self._processes.get(name)
        if process is None:
            known = ", ".join(self._processes) or "none, the cluster is not running"
            raise ClusterError(f"there is no process {name!r}; processes: {known}")
        return process

    def _launch(self, process: ServerProcess, arguments: list[str]) -> None:
        with self._launching:
            if self._aborted:
                raise ClusterError("the start was cancelled")
            process.launch(arguments)

    def _prepare(self) -> None:
        inherits: tuple[int, ...] = ()
        if self._directory is None:
            self._temporary = TemporaryFolder()
            self._directory = self._temporary.path
            # A process that outlives this one still uses the folder.
            inherits = (self._temporary.descriptor,)
        make_private_folder(self._directory)
        logs = self._directory / "logs"
        self._processes[NAMESRV] = ServerProcess(
            NAMESRV, logs / f"{NAMESRV}.log", self._directory / NAMESRV, inherits=inherits
        )
        for name in (*self._broker_names, *self._slaves):
            home = self._directory / name
            make_private_folder(home)
            self._processes[name] = ServerProcess(
                name, logs / f"{name}.log", home / "store", inherits=inherits
            )
            with open_private(self._config_path(name), "wb") as file:
                file.write(format_properties_file(self._broker_properties(name)).encode())

    def _config_path(self, name: str) -> Path:
        return self.directory / name / "broker.conf"

    def _broker_properties(self, name: str) -> dict[str, object]:
        broker_name, broker_id = self._slaves.get(name, (name, 0))
        properties = {
            "brokerClusterName": CLUSTER,
            "brokerName": broker_name,
            "brokerId": broker_id,
            "listenPort": self._ports[name],
            "bindAddress": self._host,
            "allowOpenAccess": self._allow_open_access,
            "storePathRootDir": self._processes[name].store_path,
            "profile": self._profile,
            # RocketMQ's default is false, because filters take time of a broker that others share.
            "enablePropertyFilter": True,
            **self._broker_config,
        }
        # ``broker_config`` may set brokerRole for masters; a slave's role is always SLAVE.
        return properties | {"brokerRole": "SLAVE"} if broker_id else properties

    def _namesrv_arguments(self, port: int) -> list[str]:
        place = ["-p", str(port), "--host", self._host, "--root", str(self.directory)]
        if self._allow_open_access:
            place.append("--allow-open-access")
        return [NAMESRV, *place, "--profile", self._profile, *self._process_options]

    def _broker_arguments(self, name: str, namesrv_address: str) -> list[str]:
        place = ["-n", namesrv_address, "-c", str(self._config_path(name)), "--strict"]
        events = self._events_directory
        if events is not None:
            place += ["--events", str(events / f"{name}.jsonl")]
        return ["broker", *place, *self._process_options]


def _port(process: ServerProcess) -> int:
    """Return the port of the last start; 0 before the first one."""
    return parse_address(process.address)[1] if process.address else 0


def _replace_folders(replacements: Mapping[Path, tuple[Path, Path]]) -> None:
    """Move each folder away and another one to its place; if that fails, move all of them back.

    Args:
        replacements: by folder, the new one, and where the old one goes.
    """
    moved: list[tuple[Path, Path]] = []
    try:
        for folder, (new, old) in replacements.items():
            if folder.exists():
                folder.rename(old)
                moved.append((folder, old))
            new.rename(folder)
    except BaseException:
        for folder, old in moved:
            shutil.rmtree(folder, ignore_errors=True)
            old.rename(folder)
        raise
