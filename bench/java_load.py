"""The Java process that puts the same load on either cluster through the official client."""

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
# The same for both sides: one process drives them in turn.
OPTIONS: Final = ("-Xms512m", "-Xmx512m", "-XX:+UseSerialGC")
_STOP_SECONDS: Final = 20.0


class Measured(NamedTuple):
    """What came of a load; ``failure`` is the first of the ``failed`` sends' errors."""

    messages: int
    seconds: float
    failed: int
    failure: str | None

    @property
    def rate(self) -> float:
        return self.messages / self.seconds


class LoadError(Exception):
    """The load could not be put on."""


class JavaLoad:
    """One running driver; its orders are ``tools/interop/drivers/load``'s ``Order``."""

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

    def do(self, op: str, begin: Callable[[], None] = lambda: None, **fields: Any) -> Measured:
        """Carry out one order.

        Args:
            begin: called when what is measured begins.

        Raises:
            LoadError: it could not be carried out.
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
                return Measured(ok["messages"], ok["seconds"], ok["failed"], ok.get("failure"))

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise LoadError(f"the load driver ended:\n{self._log.read_text(errors='replace')[-2000:]}")
        told: dict[str, Any] = json.loads(line)
        return told

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the driver, in order where it hears."""
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
