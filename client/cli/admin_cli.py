"""``rewindmq admin``: mqadmin's command line.

Exit codes: 0 done, 1 the command failed, 2 wrong options; resetOffsetByTime also has 3 to 5. A failed command
prints one line on standard error; if a server refused, the line is ``CODE: n  DESC: text``. mqadmin exits 1
on wrong options and 0 on a failure.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from rewindmq.client.admin.commands.command import Command
from rewindmq.client.admin.commands.table import COMMANDS
from rewindmq.client.admin.failure_text import failure_text
from rewindmq.client.cli.serialize_type_option import add_serialize_type_argument, chosen_serialize_type
from rewindmq.protocol.errors import ClientError, RewindMQError
from rewindmq.protocol.profile import RELEASES, Profile
from rewindmq.protocol.text import escape_controls, escape_lines

EPILOG: Final = """\
examples:
  rewindmq admin topicRoute -n 127.0.0.1:9876 -t TopicTest -l
  rewindmq admin resetOffsetByTime -t TopicTest -g my_group -s now
  rewindmq admin help resetOffsetByTime

exit codes: 0 done, 1 failed (one line on stderr; CODE: n  DESC: text if a server refused), 2 wrong options;
of resetOffsetByTime also 3 lost, 4 unknown, 5 moved since the preview
"""

_HELP: Final = "help"
_BY_NAME: Final = {command.name.lower(): command for command in COMMANDS}
T = TypeVar("T")


class _CaselessMap(dict[str, T], Generic[T]):
    """Maps command names to parsers: finds a name in any case, and lists the names in mqadmin's spelling."""

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._spelling(name) is not None

    def __getitem__(self, name: str) -> T:
        return super().__getitem__(self._spelling(name) or name)

    def _spelling(self, name: str) -> str | None:
        return next((known for known in self if known.lower() == name.lower()), None)


if TYPE_CHECKING:
    _SubParsers = argparse._SubParsersAction[argparse.ArgumentParser]
else:
    _SubParsers = argparse._SubParsersAction


class _CaselessSubParsers(_SubParsers):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._name_parser_map = self.choices = _CaselessMap()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define one sub-parser per command."""
    commands = parser.add_subparsers(
        dest="admin_command", metavar="COMMAND", title="commands", action=_CaselessSubParsers
    )
    for command in COMMANDS:
        _define(command, commands.add_parser(command.name, help=command.summary))
    help_parser = commands.add_parser(_HELP, help="Show the options of a command.")
    help_parser.add_argument("help_on", metavar="COMMAND", nargs="?", help="a command's name")


def _define(command: Command, parser: argparse.ArgumentParser) -> None:
    parser.description = command.summary
    parser.epilog = f"example:\n  rewindmq admin {command.name} -n 127.0.0.1:9876 {command.example}"
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    command.add_arguments(parser)
    parser.add_argument(
        "-n",
        "--namesrvAddr",
        metavar="HOST:PORT",
        help="name servers, separated by ';' (default: the environment's NAMESRV_ADDR)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON, one value per line")
    parser.add_argument(
        "--profile",
        type=Profile,
        choices=RELEASES,
        default=Profile.V49,
        help="RocketMQ release to imitate (default: v49)",
    )
    add_serialize_type_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command that the arguments name, and return the exit code."""
    name = arguments.admin_command
    if name is None or name.lower() == _HELP:
        return _show_help(None if name is None else arguments.help_on)
    command = _BY_NAME[name.lower()]

    import asyncio

    try:
        return asyncio.run(_execute(command, arguments))
    except RewindMQError as error:
        print(describe_error(error), file=sys.stderr)
        return 1


def describe_error(error: RewindMQError) -> str:
    """Return the error and its notes as one line, which has no control characters of a peer's remark."""
    return escape_controls(failure_text(error))


async def _execute(command: Command, arguments: argparse.Namespace) -> int:
    namesrv_addr = arguments.namesrvAddr or os.environ.get("NAMESRV_ADDR")
    if not namesrv_addr:
        raise ClientError("no name server: give -n HOST:PORT, or set NAMESRV_ADDR")
    from rewindmq.client.admin.admin_client import AdminClient

    exit_code = 0
    async with (
        AdminClient(
            namesrv_addr, profile=arguments.profile, serialize_type=chosen_serialize_type(arguments)
        ) as admin,
        contextlib.aclosing(command.execute(admin, arguments)) as output,
    ):
        async for printed in output:
            exit_code = printed.exit_code
            if not arguments.json:
                # Names, ids and remarks in these lines are texts of peers.
                print(escape_lines(printed.lines), flush=True)
            elif printed.data is not None:
                print(json.dumps(printed.data), flush=True)
    return exit_code


def _show_help(name: str | None) -> int:
    if name is None:
        parser = argparse.ArgumentParser(prog="rewindmq admin", description="Run one of mqadmin's commands.")
        add_arguments(parser)
    else:
        command = _BY_NAME.get(name.lower())
        if command is None:
            print(escape_controls(f"The sub command {name} not exist."), file=sys.stderr)
            return 2
        parser = argparse.ArgumentParser(prog=f"rewindmq admin {command.name}")
        _define(command, parser)
    parser.print_help()
    return 0
