"""Runs ``rewindmq``'s command line in this process."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rewindmq.__main__ import main

if TYPE_CHECKING:
    import pytest


@dataclass(frozen=True)
class Ran:
    """A command's output and exit code."""

    code: int
    output: str
    errors: str


class CommandLine:
    """Runs commands against one cluster while this event loop goes on.

    Args:
        capsys: captures what they print.
    """

    def __init__(self, namesrv: str, capsys: pytest.CaptureFixture[str]) -> None:
        self._namesrv = namesrv
        self._capsys = capsys

    async def admin(self, *arguments: str) -> Ran:
        self._capsys.readouterr()
        code = await asyncio.to_thread(main, ["admin", *arguments, "-n", self._namesrv])
        printed = self._capsys.readouterr()
        return Ran(code, printed.out, printed.err)

    async def done(self, *arguments: str) -> str:
        """Run a command that must succeed, and return its output."""
        ran = await self.admin(*arguments)
        assert (ran.code, ran.errors) == (0, ""), f"{arguments}: {ran}"
        return ran.output
