"""Builds the helpers and their tests with the tools of their languages."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tools.interop.toolchains import built, maven_jars, run_tool, tool

HERE: Final = Path(__file__).resolve().parent
# The release of the official Java client.
ROCKETMQ: Final = "5.5.0"


def java_test() -> list[str]:
    """Return the command that runs the JUnit test."""
    jars = maven_jars("kit-java", HERE / "java", ROCKETMQ)
    runner = "org.junit.platform.console.ConsoleLauncher"
    return [tool("java"), "-cp", f"{jars}/*", runner, "execute", "--scan-classpath", f"{jars}/kit-1.jar"]


def go_test() -> list[str]:
    """Return the command that runs the Go test."""
    go = tool("go")

    def build(work: Path, target: Path) -> None:
        run_tool([go, "test", "-c", "-mod=readonly", "-trimpath", "-o", str(target / "kit.test"), "."], work)

    return [str(built("kit-go", HERE / "go", build) / "kit.test"), "-test.v"]
