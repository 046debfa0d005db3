"""The external programs that some groups of tests need, and how to install each."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.spark.java import find_java


@dataclass(frozen=True, slots=True)
class Tool:
    """A program that a group of tests needs.

    Attributes:
        title: its name in messages.
        is_there: returns whether this machine has it.
        hint: how to install it.
    """

    title: str
    is_there: Callable[[], bool]
    hint: str


def _on_path(*names: str) -> Callable[[], bool]:
    return lambda: all(shutil.which(name) is not None for name in names)


def _has_java() -> bool:
    try:
        find_java()
    except PipelineError:
        return False
    return True


JAVA: Final = Tool("Java 17 or newer", _has_java, "apt-get install openjdk-17-jre-headless")
JDK: Final = Tool("a JDK, 17 or newer", _on_path("java", "javac"), "apt-get install openjdk-17-jdk-headless")
MAVEN: Final = Tool("Maven", _on_path("mvn"), "apt-get install maven")
GO: Final = Tool("Go 1.22 or newer", _on_path("go"), "see https://go.dev/doc/install")
NODE: Final = Tool("Node.js 18 or newer with npm", _on_path("node", "npm"), "see https://nodejs.org")
