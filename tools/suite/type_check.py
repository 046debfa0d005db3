"""Checks the types of all code while the tests run: tests that wait leave mypy processor time."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import IO, Final

MYPY: Final = (sys.executable, "-m", "mypy")


class TypeCheck:
    """A type checker that runs beside the tests.

    Attributes:
        process: the checker.
    """

    def __init__(self, command: Sequence[str], output: IO[bytes]) -> None:
        self._output = output
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )

    def report(self) -> int:
        """Wait for the checker's end, print its output and return its exit code, 0 if all types fit."""
        code = self.process.wait()
        self._output.seek(0)
        print(self._output.read().decode(errors="replace"), end="", flush=True)
        return code


@contextlib.contextmanager
def checking_types(command: Sequence[str] = MYPY) -> Iterator[TypeCheck]:
    """Check types for as long as the block lasts; stop a checker that still runs at its end."""
    with tempfile.TemporaryFile(prefix="rewindmq-types-") as output:
        check = TypeCheck(command, output)
        try:
            yield check
        finally:
            check.process.terminate()
            check.process.wait()
