"""Runs groups at the same time, or one after another."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from tools.suite.groups import SuiteGroup
from tools.suite.pytest_run import INTERRUPTED, GroupResult, PytestRun
from tools.suite.summary import NotRun


class SuiteInterruptedError(Exception):
    """The user interrupted a group; the groups after it were not run."""


def split(groups: Iterable[SuiteGroup]) -> tuple[list[SuiteGroup], list[NotRun]]:
    """Return the groups that this machine can run, and the groups that it cannot."""
    able: list[SuiteGroup] = []
    unable: list[NotRun] = []
    for group in groups:
        missing = tuple(tool for tool in group.needs if not tool.is_there())
        if missing:
            unable.append(NotRun(group.name, missing))
        else:
            able.append(group)
    return able, unable


def run_groups(
    groups: Sequence[SuiteGroup],
    arguments: Sequence[str],
    output: Path | None = None,
    *,
    one_by_one: bool = False,
) -> list[GroupResult]:
    """Run the groups at the same time; the others print their output after the last one.

    Args:
        arguments: more arguments for each pytest.
        output: a new file that all groups write to; None for standard output.
        one_by_one: whether each group waits for the end of the one before.

    Raises:
        SuiteInterruptedError: a group was interrupted; the others are stopped.
    """
    with ExitStack() as exits:
        directory = Path(exits.enter_context(tempfile.TemporaryDirectory(prefix="rewindmq-suite-")))
        target = exits.enter_context(output.open("w+b")) if output is not None else None
        if one_by_one:
            return [_result(PytestRun(group, arguments, directory, target)) for group in groups]
        beside = [_start_beside(group, arguments, directory, exits) for group in groups[:-1]]
        results = [_result(PytestRun(group, arguments, directory, target)) for group in groups[-1:]]
        for run, log in beside:
            results.append(_result(run))
            log.seek(0)
            sys.stdout.flush()
            stream = target or sys.stdout.buffer
            stream.write(log.read())
            stream.flush()
    return results


def _start_beside(
    group: SuiteGroup, arguments: Sequence[str], directory: Path, exits: ExitStack
) -> tuple[PytestRun, IO[bytes]]:
    print(f"test: '{group.name}' runs beside the other groups; its output comes at the end", flush=True)
    log = exits.enter_context((directory / f"{group.name}.log").open("w+b"))
    run = PytestRun(group, arguments, directory, log, is_beside=True)
    exits.callback(run.stop)
    return run, log


def _result(run: PytestRun) -> GroupResult:
    result = run.result()
    if result.code == INTERRUPTED and not result.outcomes:
        raise SuiteInterruptedError(result.group.name)
    return result
