"""Starts pytest for one group and reads the outcomes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from tools.interop.turns import take_turn
from tools.suite.groups import SuiteGroup
from tools.suite.machine import JDK
from tools.suite.outcome import SuiteOutcome, read_outcomes

# pytest's exit codes: the user interrupted it; no test was selected.
PASSED: Final = 0
INTERRUPTED: Final = 2
NO_TESTS: Final = 5
# Each process first collects all tests, so more processes cost more than they save.
_MOST_PROCESSES: Final = 4


@dataclass(frozen=True, slots=True)
class GroupResult:
    """The result of a group.

    Attributes:
        code: pytest's exit code.
        seconds: wall-clock time from pytest's start to its end.
    """

    group: SuiteGroup
    code: int
    outcomes: tuple[SuiteOutcome, ...]
    seconds: float


class PytestRun:
    """A pytest process that runs one group.

    Args:
        group: chooses the tests.
        arguments: more arguments for pytest.
        directory: where it makes a new file of outcomes.
        output: where pytest writes; None for this process's standard output.
        is_beside: whether it runs beside another group, which has the terminal.
    """

    def __init__(
        self,
        group: SuiteGroup,
        arguments: Sequence[str],
        directory: Path,
        output: IO[bytes] | None = None,
        *,
        is_beside: bool = False,
    ) -> None:
        self._group = group
        self._outcomes = directory / f"{group.name}.jsonl"
        command = [sys.executable, "-m", "pytest", "-m", group.marker, "--outcomes", str(self._outcomes)]
        command += [f"--ignore={folder}" for folder in ignored(group, Path.cwd())]
        if group.is_spread and not _is_one_process(arguments):
            command += ["-n", str(processes(group, _cores())), "--dist", "loadfile"]
            # The files with the longest tests come first, which have few (tests/support/scheduling.py).
            command += ["--no-loadscope-reorder"] if group.is_ordered else []
            if not is_compiled(Path.cwd()):
                _compile(group)
            if JDK in group.needs:
                # One turn for all its processes: if each took a turn, two runs could wait for each other.
                take_turn()
        if is_beside:
            command += ["-p", "no:cacheprovider"]
        self._process: subprocess.Popen[bytes] = subprocess.Popen(
            [*command, *arguments],
            stdin=subprocess.DEVNULL if is_beside else None,
            stdout=output,
            stderr=None if output is None else subprocess.STDOUT,
            # A process group of its own gets the interrupt that ``stop`` sends, but not the terminal's.
            process_group=0 if is_beside else None,
        )
        # A process may not raise a priority that it has lowered for itself.
        if group.niceness > os.getpriority(os.PRIO_PROCESS, 0):
            os.setpriority(os.PRIO_PROCESS, self._process.pid, group.niceness)
        self._started = self._ended = time.monotonic()
        self._watch = threading.Thread(target=self._note_end, daemon=True)
        self._watch.start()

    def result(self) -> GroupResult:
        """Wait for pytest's end and return the group's result."""
        self._watch.join()
        seconds = self._ended - self._started
        outcomes = tuple(read_outcomes(self._outcomes))
        return GroupResult(self._group, self._process.wait(), outcomes, seconds)

    def stop(self) -> None:
        """Interrupt pytest if it still runs, and wait until it has ended."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGINT)
        self._watch.join()

    def _note_end(self) -> None:
        # A thread, because pytest may end long before the caller asks for its result.
        self._process.wait()
        self._ended = time.monotonic()


def ignored(group: SuiteGroup, root: Path) -> list[str]:
    """Return what pytest must not collect: it is without tests of the group.

    Of a group with one folder this is all beside the folder. So paths among pytest's arguments choose tests
    of the group, and never others with the same marker.
    """
    if not group.folder:
        return list(group.ignores)
    folder = root / group.folder
    beside = (path for path in folder.parent.glob("*") if path.is_dir() or path.match("test_*.py"))
    return sorted(str(path.relative_to(root)) for path in beside if path != folder)


def processes(group: SuiteGroup, cores: int) -> int:
    """Return how many processes share the tests of a spread group on a machine with ``cores`` cores."""
    return min(cores + group.more_processes, _MOST_PROCESSES)


def is_compiled(root: Path) -> bool:
    """True if pytest has compiled the tests of the repository in ``root``, or Python keeps no bytecode."""
    if sys.dont_write_bytecode or not (root / "tests").is_dir():
        return True
    return any((root / "tests" / "__pycache__").glob("conftest.*-pytest-*.pyc"))


def _compile(group: SuiteGroup) -> None:
    """Collect the tests once, in a new clone: else each process compiles all modules at the same time."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", group.marker]
    # The run itself reports what cannot be collected.
    subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)


def _cores() -> int:
    """Return the number of cores that this process may use, or of all cores if the system does not tell."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _is_one_process(arguments: Sequence[str]) -> bool:
    """True if an option such as ``--pdb`` or ``-n 0`` decides about processes."""
    return any(word.startswith(("-n", "--pdb", "--numprocesses", "-s", "--capture=no")) for word in arguments)
