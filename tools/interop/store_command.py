"""``rewindmq``'s command line, run in this process."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rewindmq.__main__ import main

if TYPE_CHECKING:
    import pytest


@dataclass(frozen=True)
class Ran:
    """What a command printed, and its exit code."""

    code: int
    output: str
    errors: str


class CommandLine:
    """Runs commands against one cluster while this event loop goes on.

    Args:
        capsys: catches what they print.
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
        """The output of a command that has to succeed."""
        ran = await self.admin(*arguments)
        assert (ran.code, ran.errors) == (0, ""), f"{arguments}: {ran}"
        return ran.output
