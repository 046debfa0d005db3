"""Finds the tools of other ecosystems, and builds with them what the suite runs.

Builds go to ``.interop/`` at the root of the clone, into a directory named after a digest of the sources. So
only changed sources are built again.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tools.interop.versions import SPRING_ROCKETMQ, SPRING_STREAM_ROCKETMQ

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parent.parent
BUILT: Final = ROOT / ".interop"
_BUILD_SECONDS: Final = 900
# 361 crates: five minutes on two idle cores, more than half an hour beside other tests.
_CARGO_SECONDS: Final = 7200
# 4.2.0 depends on a Netty library through a property that only RocketMQ's own build sets.
_OLD_NETTY: Final = "-Dos.detected.classifier=linux-x86_64"

_HINTS: Final = {
    "java": "install a JDK 17 or newer (Debian, Ubuntu: apt-get install openjdk-17-jdk-headless)",
    "mvn": "install Maven (Debian, Ubuntu: apt-get install maven)",
    "go": "install Go 1.22 or newer (https://go.dev/doc/install)",
    "node": "install Node.js 18 or newer (https://nodejs.org)",
    "npm": "install Node.js 18 or newer (https://nodejs.org)",
    "cargo": "install Rust 1.95 or newer (curl -sSf https://sh.rustup.rs | sh -s -- -y)",
}
# CI runs no test that needs these.
_NOT_IN_CI: Final = frozenset(("cargo",))


class ToolMissing(Exception):  # noqa: N818
    """A tool is not on the PATH; the text names it and how to install it."""


class BuildFailed(Exception):  # noqa: N818
    """A build failed; the text is the command and the end of its output."""


def tool(name: str) -> str:
    """Return the path of a tool.

    Raises:
        ToolMissing: the tool is not on the PATH.
    """
    found = shutil.which(name)
    if found is None:
        raise ToolMissing(f"{name} is not on the PATH: {_HINTS[name]}")
    return found


def missing_tools() -> list[str]:
    """Return a line for each tool of CI's part that this machine lacks, with the way to install it."""
    lines = []
    for name in (name for name in _HINTS if name not in _NOT_IN_CI):
        try:
            tool(name)
        except ToolMissing as error:
            lines.append(str(error))
    return lines


def server_jars(version: str) -> Path:
    """Return the directory with the jars of a RocketMQ name server and broker."""
    return maven_jars(f"servers-{version}", HERE / "servers", version, (_OLD_NETTY,))


def java_driver(version: str) -> Path:
    """Return the directory with the jars of the driver and of a release's official client and tools."""
    branch = "v4" if version.startswith("4.") else "v5"
    return maven_jars(f"java-{version}", HERE / "drivers" / "java", version, ("-P", f"{branch},tools"))


def spring_driver() -> Path:
    """Return the directory with the jars of the driver and of the Spring Boot starter."""
    return maven_jars("spring", HERE / "drivers" / "java", SPRING_ROCKETMQ, ("-P", "v5,boot,spring"))


def spring_stream_driver() -> Path:
    """Return the directory with the jars of the driver and of the Spring Cloud Stream binder."""
    options = ("-P", "v5,boot,stream")
    return maven_jars("spring-stream", HERE / "drivers" / "java", SPRING_STREAM_ROCKETMQ, options)


def go_driver() -> Path:
    """Return the executable driver of the official Go client."""
    go = tool("go")

    def build(work: Path, target: Path) -> None:
        # -mod=readonly refuses modules that go.sum does not name.
        run_tool([go, "build", "-mod=readonly", "-trimpath", "-o", str(target / "driver"), "."], work)

    return built("go", HERE / "drivers" / "go", build) / "driver"


def node_driver() -> Path:
    """Return the script of ali-ons' driver, beside its packages."""
    npm = tool("npm")
    tool("node")

    def build(work: Path, target: Path) -> None:
        run_tool([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], work)
        shutil.copytree(work, target, dirs_exist_ok=True)

    return built("node", HERE / "drivers" / "node", build) / "main.js"


def rust_driver() -> Path:
    """Return the executable driver of rocketmq-client-rust.

    Its compiled crates stay in ``.interop/cargo``, so that a change of the driver compiles the driver only.
    """
    cargo = tool("cargo")

    def build(work: Path, target: Path) -> None:
        # --locked refuses crates that Cargo.lock does not name.
        compiled = BUILT / "cargo"
        run_tool([cargo, "build", "--locked", "--target-dir", str(compiled)], work, _CARGO_SECONDS)
        shutil.copy(compiled / "debug" / "driver", target)

    return built("rust", HERE / "drivers" / "rust", build) / "driver"


def maven_jars(name: str, project: Path, version: str, options: tuple[str, ...] = ()) -> Path:
    """Return the directory with a project's jar and its dependencies for this ``rocketmq.version``."""
    maven = tool("mvn")
    tool("java")

    def build(work: Path, target: Path) -> None:
        jars = (f"-Drocketmq.version={version}", f"-DoutputDirectory={target}")
        run_tool([maven, "-q", "-B", *options, *jars, "package", "dependency:copy-dependencies"], work)
        for jar in (work / "target").glob("*.jar"):
            shutil.copy(jar, target)

    return built(name, project, build, version)


def built(name: str, project: Path, build: Callable[[Path, Path], None], *more: str) -> Path:
    """Return the directory that ``build(copy of the project, target)`` fills, now or in an earlier run.

    One process builds at a time, because Maven processes do not share unfinished downloads.
    """
    digest = _digest(project, more)
    target = BUILT / f"{name}-{digest}"
    if target.is_dir():
        return target
    BUILT.mkdir(exist_ok=True)
    with _alone(BUILT / "build.lock"):
        if target.is_dir():
            return target
        work, fresh = BUILT / f"{name}.work", BUILT / f"{name}.new"
        for directory in (work, fresh, *BUILT.glob(f"{name}-{'?' * 16}")):
            shutil.rmtree(directory, ignore_errors=True)
        shutil.copytree(project, work, ignore=shutil.ignore_patterns("target", "node_modules"))
        fresh.mkdir()
        build(work, fresh)
        shutil.rmtree(work)
        fresh.rename(target)
    return target


def run_tool(command: list[str], directory: Path, seconds: float = _BUILD_SECONDS) -> None:
    """Run a build command, for at most ``seconds``.

    Raises:
        BuildFailed: it ended with an error.
    """
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=seconds)
    if done.returncode:
        lines = (done.stdout + done.stderr).strip().splitlines()
        raise BuildFailed("\n".join([f"failed: {' '.join(command)}", *lines[-30:]]))


def _digest(project: Path, more: Iterable[str]) -> str:
    digest = hashlib.sha256("\0".join(more).encode())
    for path in sorted(project.rglob("*")):
        if path.is_file() and not {"target", "node_modules"} & set(path.parts):
            digest.update(str(path.relative_to(project)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
