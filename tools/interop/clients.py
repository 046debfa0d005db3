"""The clients that the suite drives, each with its release and serialization type."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tools.interop.driver import DriverProgram
from tools.interop.toolchains import (
    ROOT,
    go_driver,
    java_driver,
    node_driver,
    rust_driver,
    spring_driver,
    spring_stream_driver,
    tool,
)
from tools.interop.versions import JAVA_CLIENTS, SPRING, SPRING_STREAM


@dataclass(frozen=True)
class ClientProgram:
    """A client, and how the suite starts it.

    Attributes:
        name: unique, used in names of topics: letters, digits and hyphens.
        title: its name on the compatibility page.
        command: builds the driver if necessary, and returns the command that starts it.
        scratch: the environment variable with the directory for the library's own files.
        is_alone: each scenario has a process of its own, because the library may panic.
        is_slow_to_build: its driver takes more than three minutes to build, so CI does not run it.
    """

    name: str
    title: str
    version: str
    codec: str
    command: Callable[[], list[str]]
    environment: Mapping[str, str] = field(default_factory=dict, hash=False)
    scratch: str | None = None
    is_alone: bool = False
    is_slow_to_build: bool = False

    async def start(self, log: Path) -> DriverProgram:
        """Start a driver of this client; its files are beside ``log``."""
        environment = dict(self.environment)
        if self.scratch is not None:
            directory = log.with_suffix(".files")
            directory.mkdir(parents=True, exist_ok=True)
            environment[self.scratch] = str(directory)
        return await DriverProgram.start(self.command(), log, environment)


def java_command(version: str, *options: str) -> list[str]:
    """Return the command that starts the Java driver of a release."""
    return _java_command(java_driver(version), "rewindmq.interop.OfficialMain", options)


def _java_command(jars: Path, program: str, options: Sequence[str] = ()) -> list[str]:
    memory = ("-Xms64m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
    # A consumer that rebalances before the change is visible rebalances again after 5 s, not 20.
    quick = "-Drocketmq.client.rebalance.waitInterval=5000"
    # Long, because a busy machine may answer late.
    patient = "-Dcom.rocketmq.remoting.client.connect.timeout=30000"
    return [tool("java"), *memory, quick, patient, *options, "-cp", f"{jars}/*", program]


def _java(version: str, codec: str) -> ClientProgram:
    return ClientProgram(
        f"java-{version.replace('.', '')}-{codec.lower()}",
        "rocketmq-client (Java)",
        version,
        codec,
        lambda: java_command(version, f"-Drocketmq.serialize.type={codec}"),
    )


def _rewindmq(serialize_type: str) -> ClientProgram:
    command = [sys.executable, "-m", "tools.interop.drivers.rewindmq", "--serialize-type", serialize_type]
    paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environment = {"PYTHONPATH": paths}
    return ClientProgram(
        f"rewindmq-{serialize_type.lower()}",
        "RewindMQ",
        "",
        serialize_type,
        lambda: command,
        environment,
    )


_GO: Final = ClientProgram(
    "go",
    "rocketmq-client-go",
    "2.1.2",
    "JSON",
    lambda: [str(go_driver())],
    {"ROCKETMQ_GO_LOG_LEVEL": "warn"},
    scratch="rocketmq.client.localOffsetStoreDir",
    is_alone=True,
)
_NODE: Final = ClientProgram(
    "node",
    "ali-ons (Node)",
    "3.12.0",
    "JSON",
    lambda: [tool("node"), str(node_driver())],
    scratch="HOME",
)
_SPRING: Final = ClientProgram(
    "spring",
    "rocketmq-spring-boot-starter",
    SPRING,
    "JSON",
    lambda: _java_command(spring_driver(), "rewindmq.interop.SpringMain"),
)
_SPRING_STREAM: Final = ClientProgram(
    "spring-stream",
    "spring-cloud-starter-stream-rocketmq",
    SPRING_STREAM,
    "JSON",
    lambda: _java_command(spring_stream_driver(), "rewindmq.interop.StreamMain"),
)
_RUST: Final = ClientProgram(
    "rust",
    "rocketmq-client-rust",
    "1.0.0",
    "JSON",
    lambda: [str(rust_driver())],
    scratch="rocketmq.client.localOffsetStoreDir",
    is_slow_to_build=True,
)

CLIENTS: Final[tuple[ClientProgram, ...]] = (
    *(_java(version, codec) for version in JAVA_CLIENTS for codec in ("JSON", "ROCKETMQ")),
    _rewindmq("JSON"),
    _rewindmq("ROCKETMQ"),
    _rewindmq("auto"),
    _GO,
    _NODE,
    _SPRING,
    _SPRING_STREAM,
    _RUST,
)
