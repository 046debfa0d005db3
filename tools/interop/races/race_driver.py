"""The Java program that runs the consumers of the races, and the suite's side of its line protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tools.interop.driver import DriverProgram
from tools.interop.toolchains import HERE, maven_jars, tool

_PROJECT: Final = HERE / "drivers" / "race"
# The first release with lite pull consumers.
_LITE: Final = (4, 6)
_JAVA: Final = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
# Java 17 needs these options for releases written for Java 8.
_OPENS: Final = ("--add-opens=java.base/java.lang=ALL-UNNAMED", "--add-opens=java.base/java.nio=ALL-UNNAMED")

# Called as hear(kind, seconds of the machine's monotonic clock, details).
Hearer = Callable[[str, float, dict[str, Any]], None]


def number(version: str) -> tuple[int, ...]:
    """Return a release as a tuple that can be compared."""
    return tuple(int(part) for part in version.split("."))


def race_driver_jars(version: str) -> Path:
    """Return the directory with the driver's jar and the jars of the official client of a release."""
    options = ("-P", "lite") if number(version) >= _LITE else ()
    return maven_jars(f"race-{version}", _PROJECT, version, options)


class RaceDriver(DriverProgram):
    """One JVM with many consumers of one release."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        super().__init__(process, log)
        self._hearers: dict[str, Hearer] = {}
        self._home = log.parent

    @classmethod
    async def launch(cls, version: str, directory: Path, name: str) -> RaceDriver:
        """Start the driver; the jars must be built already."""
        home = directory / name
        home.mkdir(parents=True, exist_ok=True)
        properties = (
            f"-Duser.home={home}",
            f"-Drocketmq.client.logRoot={home}",
            f"-Drocketmq.client.localOffsetStoreDir={home}/offsets",
            "-Drocketmq.client.logUseSlf4j=false",
        )
        command = [tool("java"), *_JAVA, *_OPENS, *properties, "-cp", f"{race_driver_jars(version)}/*"]
        driver = await cls.start([*command, "rewindmq.race.Main"], home / "stderr.log")
        assert isinstance(driver, cls)
        return driver

    def hear(self, consumer: str, hearer: Hearer) -> None:
        """Call ``hearer`` with every point of a consumer."""
        self._hearers[consumer] = hearer

    @property
    def offset_files(self) -> list[Path]:
        """The files in which its broadcasting consumers keep their offsets."""
        return list((self._home / "offsets").rglob("offsets.json"))

    async def _take(self, line: dict[str, Any]) -> None:
        if line.get("event") != "point":
            await super()._take(line)
        elif (hearer := self._hearers.get(line["consumer"])) is not None:
            hearer(line["kind"], line["at"], line["details"])
