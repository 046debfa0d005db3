"""The Java program whose consumers race, and the suite's end of its lines."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tools.interop.driver import Driver
from tools.interop.toolchains import HERE, maven_jars, tool

_PROJECT: Final = HERE / "drivers" / "race"
# Lite pull consumers came with it.
_LITE: Final = (4, 6)
_JAVA: Final = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
# What Java 17 has to be told for releases written for Java 8.
_OPENS: Final = ("--add-opens=java.base/java.lang=ALL-UNNAMED", "--add-opens=java.base/java.nio=ALL-UNNAMED")

# Called as hear(kind, seconds of the machine's monotonic clock, details).
Hearer = Callable[[str, float, dict[str, Any]], None]


def number(version: str) -> tuple[int, ...]:
    """A release as a number that can be compared."""
    return tuple(int(part) for part in version.split("."))


def race_driver_jars(version: str) -> Path:
    """Directory with the driver's jar and those of the official client of a release."""
    options = ("-P", "lite") if number(version) >= _LITE else ()
    return maven_jars(f"race-{version}", _PROJECT, version, options)


class RaceDriver(Driver):
    """One JVM full of consumers of one release."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        super().__init__(process, log)
        self._hearers: dict[str, Hearer] = {}
        self._home = log.parent

    @classmethod
    async def launch(cls, version: str, directory: Path, name: str) -> RaceDriver:
        """Start it; the jars are built already."""
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
        """Have everything that is told of a consumer told to ``hearer``."""
        self._hearers[consumer] = hearer

    @property
    def offset_files(self) -> list[Path]:
        """Where its broadcasting consumers keep their progress."""
        return list((self._home / "offsets").rglob("offsets.json"))

    async def _take(self, line: dict[str, Any]) -> None:
        if line.get("event") != "point":
            await super()._take(line)
        elif (hearer := self._hearers.get(line["consumer"])) is not None:
            hearer(line["kind"], line["at"], line["details"])
