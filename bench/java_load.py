"""The Java process that puts the same load on each cluster with the official client."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from tools.interop.toolchains import HERE, maven_jars, tool

CLIENT: Final = "4.9.8"
# One process drives both clusters in turn, so the options are the same for both.
OPTIONS: Final = ("-Xms512m", "-Xmx512m", "-XX:+UseSerialGC")
_STOP_SECONDS: Final = 20.0


class MeasuredLoad(NamedTuple):
    """The result of a load; ``failure`` is the error of the first of the ``failed`` sends."""

    messages: int
    seconds: float
    failed: int
    failure: str | None

    @property
    def rate(self) -> float:
        return self.messages / self.seconds


class LoadError(Exception):
    """The Java driver could not run a load."""


class JavaLoad:
    """One running driver; it takes orders as described by ``Order`` in ``tools/interop/drivers/load``."""

    def __init__(self) -> None:
        jars = maven_jars(f"load-{CLIENT}", HERE / "drivers" / "load", CLIENT)
        self._home = tempfile.TemporaryDirectory(prefix="rewindmq-load-")
        self._log = Path(self._home.name) / "load.log"
        # The client writes its log below the home directory.
        home = f"-Duser.home={self._home.name}"
        command = [tool("java"), *OPTIONS, home, "-cp", f"{jars}/*", "rewindmq.load.Main"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=os.environ | {"JAVA_TOOL_OPTIONS": ""},
            )
        try:
            self._read()
        except BaseException:
            self.close()
            raise

    def do(self, op: str, begin: Callable[[], None] = lambda: None, **fields: Any) -> MeasuredLoad:
        """Let the driver carry out one order.

        Args:
            begin: called when the measured part begins.

        Raises:
            LoadError: the driver could not carry the order out.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"op": op} | fields) + "\n")
        self._process.stdin.flush()
        while True:
            line = self._read()
            if "event" in line:
                begin()
            elif "error" in line:
                raise LoadError(f"{op}: {line['error']}")
            else:
                ok = line["ok"]
                return MeasuredLoad(ok["messages"], ok["seconds"], ok["failed"], ok.get("failure"))

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise LoadError(f"the load driver ended:\n{self._log.read_text(errors='replace')[-2000:]}")
        value: dict[str, Any] = json.loads(line)
        return value

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop the driver by closing its standard input; kill it if it does not end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._home.cleanup()
