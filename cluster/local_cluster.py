"""One name server and N brokers on this machine, each its own OS process."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Final, Self

from rewindmq.cluster.async_cluster import AsyncLocalCluster, run_in_thread
from rewindmq.cluster.clients import ClusterClients
from rewindmq.cluster.errors import ClusterError
from rewindmq.cluster.member import Member
from rewindmq.cluster.names import MAX_BROKERS, MAX_SLAVES, NAMESRV, broker_names, slave_names
from rewindmq.protocol.config.property_file import format_properties_file
from rewindmq.protocol.options import parse_choice, refuse_unknown_options
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.address import parse_address

# RocketMQ's brokers use the ports around theirs too (VIP -2, HA +1).
BROKER_PORT_STEP: Final = 10

# Leaving a block so is no failure of what ran in it.
_ORDERLY_ENDS: Final = (KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError)


class LocalCluster(ClusterClients):
    """Processes started together and never left behind.

    ::

        async with LocalCluster(brokers=1, time_scale=0.05) as cluster:
            async with cluster.producer("my_producer") as producer:
                ...

    Used as ``with LocalCluster(brokers=2) as cluster:`` or ``async with ...`` (which gives an
    ``AsyncLocalCluster``), or by ``start`` and ``close``. Members stop when the block is left in any way,
    and when this process ends in any way, SIGKILL included. An error that leaves the block carries the last
    lines of each member's log as notes.

    Args:
        brokers: how many, 1 to 26: broker-a, broker-b, ... each a master with its own store.
        slaves: how many each of them has, 0 to 3: broker-a-s1, ... each a copy of its master.
        directory: where configurations, stores and logs go, kept at the end; by default a temporary one,
            removed at the end.
        namesrv_port: 0 takes any free one.
        broker_port: broker-a's port, the next ones 10 apart, slaves behind masters; 0 takes any free ones.
        host: the interface all members listen on.
        time_scale: factor on every scheduled wait of every member and of the clients that the cluster makes.
        profile: the release that all members imitate: "v42", "v49" (default) or "v53"; taken over by clients.
        seed: makes the random choices of members and clients repeatable; None: they are not.
        broker_config: further keys of ``broker.conf``, the same for each broker, as
            ``{"flushDiskType": "SYNC_FLUSH"}``; with one that there is not, ``start`` fails.
        log_level: of all members: "debug", "info" (default), "warning" or "error".
        events_directory: each broker appends the named points it passes to ``<its name>.jsonl`` there (see
            ``rewindmq broker --events``); None: none does.
        start_seconds: how long each member may take to serve once its turn to be waited for has come.
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
        host: str = "127.0.0.1",
        time_scale: float = 1.0,
        profile: Profile | str = "v49",
        seed: int | None = None,
        broker_config: Mapping[str, object] = MappingProxyType({}),
        log_level: str = "info",
        events_directory: Path | None = None,
        start_seconds: float = 30.0,
    ) -> None:
        if not 1 <= brokers <= MAX_BROKERS:
            raise ClusterError(f"brokers must be 1 to {MAX_BROKERS}, not {brokers}")
        if not 0 <= slaves <= MAX_SLAVES:
            raise ClusterError(f"slaves must be 0 to {MAX_SLAVES}, not {slaves}")
        self._broker_names = broker_names(brokers)
        self._slaves = slave_names(brokers, slaves)
        self._directory = None if directory is None else Path(directory).absolute()
        self._is_temporary = directory is None
        self._namesrv_port = namesrv_port
        self._broker_port = broker_port
        self._host = host
        self._profile = parse_choice(Profile, profile, "profile", error=ClusterError)
        self._client_options: dict[str, Any] = {"time_scale": time_scale, "profile": self._profile}
        self._broker_config = dict(broker_config)
        self._process_options = ["--time-scale", str(time_scale), "--log-level", log_level]
        if seed is not None:
            self._client_options["seed"] = seed
            self._process_options += ["--seed", str(seed)]
        self._events_directory = events_directory
        self._start_seconds = start_seconds
        self._members: dict[str, Member] = {}
        self._launching = threading.Lock()
        self._aborted = False

    @property
    def directory(self) -> Path:
        """Where configurations, stores and logs are.

        Raises:
            ClusterError: it is a temporary one and the cluster is not running.
        """
        if self._directory is None:
            raise ClusterError("the cluster is not running")
        return self._directory

    @property
    def namesrv(self) -> Member:
        """The name server's process."""
        return self._member(NAMESRV)

    @property
    def namesrv_address(self) -> str:
        """What clients are given as NAMESRV_ADDR, ``host:port``."""
        return self.namesrv.address

    @property
    def client_options(self) -> Mapping[str, Any]:
        """The options that clients take over."""
        return self._client_options

    @property
    def brokers(self) -> dict[str, Member]:
        """The masters' processes by broker name."""
        return {name: self._member(name) for name in self._broker_names}

    @property
    def slaves(self) -> dict[str, Member]:
        """The slaves' processes by name: ``broker-a-s1`` is the first of ``broker-a``."""
        return {name: self._member(name) for name in self._slaves}

    def start(self) -> None:
        """Start all members and wait until all of them serve; nothing is left of a failed start.

        All interpreters load at the same time; the brokers wait for the name server's address on their
        standard input.

        Raises:
            ClusterError: a member ended or did not serve in time; the text is one line.
            OSError: the directory cannot be written.
        """
        assert not self._members, "started already"
        try:
            self._prepare()
            self._launch(self.namesrv, self._namesrv_arguments(self._namesrv_port))
            for name, broker in (self.brokers | self.slaves).items():
                self._launch(broker, self._broker_arguments(name, "-"))
            self.namesrv.wait_ready(self._start_seconds)
            # Slaves are told of their masters when they register, so masters come first.
            for brokers in (self.brokers, self.slaves):
                for broker in brokers.values():
                    broker.tell(self.namesrv_address)
                for broker in brokers.values():
                    broker.wait_ready(self._start_seconds)
        except BaseException:
            for member in self._members.values():
                member.kill()
            self.close()
            raise

    def close(self) -> None:
        """Stop all members, brokers first, and remove a temporary directory. Safe to call again."""
        members = list(self._members.values())
        # Brokers say goodbye to the name server, so that it has to go last.
        for stopping in (members[1:], members[:1]):
            for member in stopping:
                member.begin_stop()
            for member in stopping:
                member.finish_stop()
        self._members.clear()
        if self._is_temporary and self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None

    def kill(self, name: str) -> None:
        """``kill -9`` one member, by its name (``"namesrv"``, ``"broker-a"``, ...)."""
        self._member(name).kill()

    def stop(self, name: str) -> None:
        """Stop one member in order; returns when its process is gone."""
        member = self._member(name)
        member.begin_stop()
        member.finish_stop()

    def restart(self, name: str) -> None:
        """Start a member again with its store and at its port, after stopping it if it still runs.

        Raises:
            ClusterError: it did not start; its process is gone then.
        """
        member = self._member(name)
        self.stop(name)
        port = parse_address(member.address)[1]
        if name == NAMESRV:
            arguments = self._namesrv_arguments(port)
        else:
            arguments = [*self._broker_arguments(name, self.namesrv_address), "-p", str(port)]
        try:
            self._launch(member, arguments)
            member.wait_ready(self._start_seconds)
        except BaseException:
            member.kill()
            raise

    def abort(self) -> None:
        """Make a ``start`` or ``restart`` that runs in another thread fail at once."""
        with self._launching:
            self._aborted = True
            for member in self._members.values():
                member.abort()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._note_logs(error)
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
        self._note_logs(error)
        await run_in_thread(self.close)

    def _note_logs(self, error: BaseException | None) -> None:
        """Attach the end of each member's log to the error that leaves the block: the logs go with it."""
        if error is None or isinstance(error, _ORDERLY_ENDS):
            return
        for member in self._members.values():
            if tail := member.log_tail():
                error.add_note(f"the log of {member.name} ends:\n  " + "\n  ".join(tail))

    def _member(self, name: str) -> Member:
        member = self._members.get(name)
        if member is None:
            known = ", ".join(self._members) or "none, the cluster is not running"
            raise ClusterError(f"there is no member {name!r}; members: {known}")
        return member

    def _launch(self, member: Member, arguments: list[str]) -> None:
        with self._launching:
            if self._aborted:
                raise ClusterError("the start was called off")
            member.launch(arguments)

    def _prepare(self) -> None:
        if self._directory is None:
            self._directory = Path(tempfile.mkdtemp(prefix="rewindmq-"))
        self._directory.mkdir(parents=True, exist_ok=True)
        logs = self._directory / "logs"
        self._members[NAMESRV] = Member(NAMESRV, logs / f"{NAMESRV}.log", self._directory / NAMESRV)
        for index, name in enumerate((*self._broker_names, *self._slaves)):
            home = self._directory / name
            home.mkdir(exist_ok=True)
            self._members[name] = Member(name, logs / f"{name}.log", home / "store")
            self._config_path(name).write_text(format_properties_file(self._broker_properties(name, index)))

    def _config_path(self, name: str) -> Path:
        return self.directory / name / "broker.conf"

    def _broker_properties(self, name: str, index: int) -> dict[str, object]:
        broker_name, broker_id = self._slaves.get(name, (name, 0))
        properties = {
            "brokerClusterName": "DefaultCluster",
            "brokerName": broker_name,
            "brokerId": broker_id,
            "listenPort": self._broker_port and self._broker_port + index * BROKER_PORT_STEP,
            "bindAddress": self._host,
            "storePathRootDir": self._members[name].store_path,
            "profile": self._profile,
            # Off by RocketMQ's default; on a cluster of one's own there is nobody whom it could slow down.
            "enablePropertyFilter": True,
            **self._broker_config,
        }
        # What a master may be told by broker_config, a slave is not.
        return properties | {"brokerRole": "SLAVE"} if broker_id else properties

    def _namesrv_arguments(self, port: int) -> list[str]:
        place = ["-p", str(port), "--host", self._host, "--root", str(self.directory)]
        return [NAMESRV, *place, "--profile", self._profile, *self._process_options]

    def _broker_arguments(self, name: str, namesrv_address: str) -> list[str]:
        place = ["-n", namesrv_address, "-c", str(self._config_path(name)), "--strict"]
        events = self._events_directory
        if events is not None:
            place += ["--events", str(events / f"{name}.jsonl")]
        return ["broker", *place, *self._process_options]
