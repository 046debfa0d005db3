"""RewindMQ's name server and broker as single processes: to run beside RocketMQ's, or to open its store."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from rewindmq.cluster.server_process import ServerProcess
from rewindmq.protocol.config.property_file import format_properties_file
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.address import parse_address
from tools.interop.servers import BROKER, COMMON_CONFIG, NO_CONFIG

_START_SECONDS: Final = 240.0


class RewindMQNamesrv:
    """``rewindmq namesrv`` at a free port."""

    def __init__(self, profile: Profile, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._process = ServerProcess("namesrv", directory / "namesrv.log", directory)
        arguments = ["namesrv", "-p", "0", "--host", "127.0.0.1", "--root", str(directory)]
        self._process.launch([*arguments, "--profile", profile.value])
        try:
            self._process.wait_ready(_START_SECONDS)
        except BaseException:
            self._process.kill()
            raise

    @property
    def address(self) -> str:
        return self._process.address

    def stop(self) -> None:
        self._process.begin_stop()
        self._process.finish_stop()


class RewindMQBroker:
    """``rewindmq broker`` at a given name server of either kind, with the interface of ``RocketMQBroker``.

    Args:
        store: its ``storePathRootDir``; may contain a store already.
        config: more keys of ``broker.conf``, which override the common keys.
    """

    def __init__(
        self,
        profile: Profile,
        namesrv: str,
        directory: Path,
        store: Path | None = None,
        config: Mapping[str, object] = NO_CONFIG,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.profile = profile
        self.store_path = store or directory / "store"
        self._namesrv = namesrv
        self._file = directory / "rewindmq.conf"
        self._config = {**COMMON_CONFIG, "profile": profile.value, **config}
        self._process = ServerProcess(
            str(config.get("brokerName", BROKER)), directory / "rewindmq.log", directory
        )
        self.start()

    @property
    def address(self) -> str:
        return self._process.address

    @property
    def log(self) -> str:
        return self._process.log_path.read_text(errors="replace")

    def start(self) -> None:
        """Start (again) with the existing store, at the port of the first start."""
        port = parse_address(self.address)[1] if self.address else 0
        keys = {"listenPort": port, **self._config, "storePathRootDir": self.store_path}
        self._file.write_text(format_properties_file(keys))
        self._process.launch(["broker", "-n", self._namesrv, "-c", str(self._file)])
        try:
            self._process.wait_ready(_START_SECONDS)
        except BaseException:
            self._process.kill()
            raise

    def stop(self) -> None:
        self._process.begin_stop()
        self._process.finish_stop()

    def kill(self) -> None:
        self._process.kill()
