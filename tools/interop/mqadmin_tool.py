"""The official mqadmin: one JVM for many commands, or a process for one command."""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from tools.interop.driver import DriverProgram
from tools.interop.servers import rocketmq_home
from tools.interop.toolchains import java_driver, tool

ACCESS_KEY: Final = "rewinder"
# The tool prints this when a response takes longer than it waits.
OWN_TIMEOUT: Final = "RemotingTimeoutException"
_MAIN: Final = "org.apache.rocketmq.tools.command.MQAdminStartup"
_COMMAND_SECONDS: Final = 240.0
_STACK: Final = re.compile(r"^\s*(at |\.\.\. \d+ more)")
# By default a request that times out, as on a busy machine, closes the connection that all requests share.
_PATIENT: Final = "-Dcom.rocketmq.remoting.client.closeSocketIfTimeout=false"
_JAVA_OPTIONS: Final = (_PATIENT, "-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


@dataclass(frozen=True)
class ToolOutput:
    """The output of a command.

    Attributes:
        errors: standard error without the lines of stack traces.
        status: the exit status of a process of its own; None in the shared JVM.
    """

    output: str
    errors: str
    status: int | None = None

    @classmethod
    def of(cls, output: str, errors: str, status: int | None = None) -> Self:
        lines = [line for line in errors.splitlines() if not _STACK.match(line)]
        return cls(output, "\n".join(lines), status)


class MqadminTool:
    """Runs commands of one release against one name server, one at a time."""

    def __init__(self, driver: DriverProgram, namesrv: str) -> None:
        self._driver = driver
        self._namesrv = namesrv
        self._alone = asyncio.Lock()

    @classmethod
    async def start(cls, version: str, namesrv: str, directory: Path, *, signs: bool = False) -> Self:
        """Start the JVM.

        Args:
            signs: write a ``tools.yml``, so that the tool signs every request.
        """
        home = make_home(directory, signs=signs)
        command = [*_java(version, home), "rewindmq.interop.MqadminMain"]
        environment = {"ROCKETMQ_HOME": str(home), "JAVA_TOOL_OPTIONS": ""}
        # consumerStatus writes files to its working directory.
        command = ["env", "-C", str(directory), *command]
        # With the priority of the servers, because it gives up after 3 s.
        driver = await DriverProgram.start(command, directory / "log", environment, niceness=0)
        return cls(driver, namesrv)

    async def run(self, *arguments: str) -> ToolOutput:
        """Run one command, given as typed after ``mqadmin``; adds the name server."""
        async with self._alone:
            args = [*arguments, "-n", self._namesrv]
            answer = await self._driver.do("mqadmin", args=args, seconds=_COMMAND_SECONDS)
        return ToolOutput.of(answer["output"], answer["errors"])

    async def stop(self) -> None:
        await self._driver.stop()


def run_process(version: str, directory: Path, arguments: Sequence[str]) -> ToolOutput:
    """Run one command as a process of its own, and wait until it ends."""
    home = make_home(directory, signs=False)
    done = subprocess.run(
        [*_java(version, home), _MAIN, *arguments],
        capture_output=True,
        text=True,
        timeout=_COMMAND_SECONDS,
        cwd=directory,
        env=os.environ | {"ROCKETMQ_HOME": str(home), "JAVA_TOOL_OPTIONS": ""},
    )
    return ToolOutput.of(done.stdout, done.stderr, done.returncode)


def first_lines(version: str, directory: Path, arguments: Sequence[str], count: int) -> ToolOutput:
    """Run a command that never ends, and kill it after its first lines; fewer if it ends before.

    Args:
        count: the number of lines.
    """
    home = make_home(directory, signs=False)
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [*_java(version, home), _MAIN, *arguments],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=directory,
            env=os.environ | {"ROCKETMQ_HOME": str(home), "JAVA_TOOL_OPTIONS": ""},
        )
        late = threading.Timer(_COMMAND_SECONDS, process.kill)
        late.start()
        with process:
            try:
                assert process.stdout is not None
                output = "".join(itertools.islice(process.stdout, count))
            finally:
                late.cancel()
                process.kill()
        errors.seek(0)
        return ToolOutput.of(output, errors.read())


def make_home(directory: Path, *, signs: bool) -> Path:
    """Create a ROCKETMQ_HOME, with the keys of an account if ``signs``."""
    home = rocketmq_home(directory)
    if signs:
        text = f"accessKey: {ACCESS_KEY}\nsecretKey: 12345678\n"
        (home / "conf" / "tools.yml").write_text(text)
    return home


def _java(version: str, home: Path) -> list[str]:
    jars = java_driver(version)
    places = (f"-Duser.home={home}", f"-Djava.io.tmpdir={home}")
    return [tool("java"), *_JAVA_OPTIONS, *places, "-cp", f"{jars}/*"]
