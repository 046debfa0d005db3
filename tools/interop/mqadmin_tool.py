"""The official mqadmin: one JVM for many commands, or a process of its own for one."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from tools.interop.driver import Driver
from tools.interop.servers import rocketmq_home
from tools.interop.toolchains import java_driver, tool

ACCESS_KEY: Final = "rewinder"
_COMMAND_SECONDS: Final = 240.0
_STACK: Final = re.compile(r"^\s*(at |\.\.\. \d+ more)")
# By default a request that times out, as on a busy machine, closes the connection under all others.
_PATIENT: Final = "-Dcom.rocketmq.remoting.client.closeSocketIfTimeout=false"
_JAVA_OPTIONS: Final = (_PATIENT, "-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


@dataclass(frozen=True)
class Printed:
    """What a command said.

    Attributes:
        errors: without the lines that only say where in the tool's code it came from.
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
    """Runs commands of one release against one name server, one at a time.

    Args:
        home: ROCKETMQ_HOME; commands that write files get a directory in it to write to.
    """

    def __init__(self, driver: Driver, namesrv: str) -> None:
        self._driver = driver
        self._namesrv = namesrv
        self._alone = asyncio.Lock()

    @classmethod
    async def start(cls, version: str, namesrv: str, directory: Path, *, signs: bool = False) -> Self:
        """Start the JVM.

        Args:
            signs: there is a ``tools.yml``, so that every request is signed.
        """
        home = make_home(directory, signs=signs)
        command = [*_java(version, home), "rewindmq.interop.MqadminMain"]
        environment = {"ROCKETMQ_HOME": str(home), "JAVA_TOOL_OPTIONS": ""}
        # It writes what it knows of consumers to its working directory.
        driver = await Driver.start(["env", "-C", str(directory), *command], directory / "log", environment)
        return cls(driver, namesrv)

    async def run(self, *arguments: str) -> Printed:
        """One command, as typed behind ``mqadmin``; the name server is added."""
        async with self._alone:
            args = [*arguments, "-n", self._namesrv]
            answer = await self._driver.do("mqadmin", args=args, seconds=_COMMAND_SECONDS)
        return Printed.of(answer["output"], answer["errors"])

    async def stop(self) -> None:
        await self._driver.stop()


def run_process(version: str, directory: Path, arguments: Sequence[str]) -> Printed:
    """One command as a process of its own, until it has ended by itself."""
    home = make_home(directory, signs=False)
    done = subprocess.run(
        [*_java(version, home), "org.apache.rocketmq.tools.command.MQAdminStartup", *arguments],
        capture_output=True,
        text=True,
        timeout=_COMMAND_SECONDS,
        cwd=directory,
        env=os.environ | {"ROCKETMQ_HOME": str(home), "JAVA_TOOL_OPTIONS": ""},
    )
    return Printed.of(done.stdout, done.stderr, done.returncode)


def make_home(directory: Path, *, signs: bool) -> Path:
    """A ROCKETMQ_HOME, with or without the keys of an account."""
    home = rocketmq_home(directory)
    if signs:
        text = f"accessKey: {ACCESS_KEY}\nsecretKey: 12345678\n"
        (home / "conf" / "tools.yml").write_text(text)
    return home


def _java(version: str, home: Path) -> list[str]:
    jars = java_driver(version)
    return [tool("java"), *_JAVA_OPTIONS, f"-Duser.home={home}", "-cp", f"{jars}/*"]
