"""Finds a Java for Spark without starting Spark."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from rewindmq.pipeline.errors import PipelineError

# The version that Spark 4 requires.
MIN_JAVA: Final = 17
# Limit for ``java -version``, in seconds; a cold start on a busy machine takes a few.
_PATIENCE: Final = 30.0
_VERSION: Final = re.compile(r'version "(\d+)(?:\.(\d+))?')
_INSTALL: Final = (
    "install Java 17 or newer (Debian, Ubuntu: apt-get install openjdk-17-jre-headless; Fedora: dnf install"
    " java-21-openjdk-headless; macOS: brew install openjdk@17) or set JAVA_HOME"
)
_FOLDERS: Final = (Path("/usr/lib/jvm"),)
_MACOS_HELPER: Final = Path("/usr/libexec/java_home")


class Java(NamedTuple):
    """One Java installation.

    Attributes:
        home: the value for ``JAVA_HOME``.
        version: 17, 21, ...; 8 for Java 1.8.
    """

    home: Path
    version: int


def find_java(environment: Mapping[str, str] = os.environ, folders: tuple[Path, ...] = _FOLDERS) -> Java:
    """Return the first Java that is new enough.

    Looks at ``JAVA_HOME``, the ``PATH``, ``/usr/lib/jvm`` and macOS's own list, in this order.

    Raises:
        PipelineError: there is none; the text lists Javas that are too old.
    """
    refused = []
    for home in _candidates(environment, folders):
        version = java_version(home)
        if version is not None and version >= MIN_JAVA:
            return Java(home, version)
        refused.append(f"{home} is {'not a Java' if version is None else f'Java {version}'}")
    found = f"; {', '.join(refused)}" if refused else ", and none was found"
    raise PipelineError(f"Spark needs Java {MIN_JAVA} or newer{found}: {_INSTALL}")


def java_version(home: Path) -> int | None:
    """Return the version that ``bin/java -version`` prints; None if it prints none."""
    try:
        result = subprocess.run(  # noqa: S603
            [home / "bin" / "java", "-version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(result.stderr + result.stdout)
    if match is None:
        return None
    first, second = match.groups()
    return int(second) if first == "1" and second is not None else int(first)


def _candidates(environment: Mapping[str, str], folders: tuple[Path, ...]) -> Iterator[Path]:
    seen = set()
    for home in _places(environment, folders):
        real = home.resolve()
        if real not in seen:
            seen.add(real)
            yield home


def _places(environment: Mapping[str, str], folders: tuple[Path, ...]) -> Iterator[Path]:
    if environment.get("JAVA_HOME"):
        yield Path(environment["JAVA_HOME"])
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path is not None:
        # An entry of the PATH is usually a link to the real place.
        yield Path(on_path).resolve().parent.parent
    for folder in folders:
        yield from sorted(java.parent.parent for java in folder.glob("*/bin/java"))
    if sys.platform == "darwin" and _MACOS_HELPER.exists():
        result = subprocess.run(  # noqa: S603
            [_MACOS_HELPER, "-v", f"{MIN_JAVA}+"], capture_output=True, text=True, check=False
        )
        if result.returncode == 0:
            yield Path(result.stdout.strip())


def main() -> int:
    """Print the value for ``JAVA_HOME``, for scripts; print one line and return 1 if there is no Java."""
    try:
        print(find_java().home)
    except PipelineError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
