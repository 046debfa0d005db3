"""Mqadmin: the commands of ``rewindmq admin``, run inside a scenario."""

from __future__ import annotations

import argparse
from typing import Any

from rewindmq.client.admin.commands.command import Printed
from rewindmq.client.admin.commands.table import COMMANDS
from rewindmq.client.cli import admin_cli
from tests.support.clients import Clients


class Mqadmin(Clients):
    """Runs command lines as ``rewindmq admin`` does, without a process."""

    async def run(self, line: str) -> list[str]:
        """The lines ``rewindmq admin LINE`` prints."""
        return await self.run_arguments(line.split())

    async def run_arguments(self, words: list[str]) -> list[str]:
        """The same for words that may hold spaces."""
        return [text for printed in await self.printed(words) for text in printed.lines]

    async def data(self, line: str) -> Any:
        """The one value that ``rewindmq admin LINE --json`` prints."""
        (printed,) = await self.printed(line.split())
        return printed.data

    async def printed(self, words: list[str]) -> list[Printed]:
        """Every piece of output, as text and JSON."""
        parser = argparse.ArgumentParser()
        admin_cli.add_arguments(parser)
        arguments = parser.parse_args([*words, "--profile", self.profile])
        command = next(item for item in COMMANDS if item.name.lower() == arguments.admin_command.lower())
        admin = await self.admin()
        return [printed async for printed in command.execute(admin, arguments)]
