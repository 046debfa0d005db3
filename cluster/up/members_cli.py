"""``rewindmq members``: shows and changes the processes of a cluster that ``rewindmq up`` runs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

EPILOG: Final = """\
examples:
  rewindmq members                              the processes of the only running cluster
  rewindmq members kill broker-a                SIGKILL; returns when the process has ended
  rewindmq members restart broker-a             returns when it serves again, at its port, with its store
  rewindmq members pause broker-a               SIGSTOP: it keeps its connections, and answers nothing
  rewindmq members resume broker-a
  rewindmq members --dir ./rewindmq-data --json

Exit codes: 0 done, 1 failed (one line on stderr says why), 2 wrong usage, 130 interrupted.
"""

_ACTIONS: Final = {
    "kill": "end a process with SIGKILL",
    "restart": "stop a process if it runs, and start it again",
    "pause": "stop a process with SIGSTOP",
    "resume": "let a paused process continue",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options of ``rewindmq members``."""
    _add_options(parser, directory=None, as_json=False)
    parser.set_defaults(action="list", member="")
    actions = parser.add_subparsers(metavar="ACTION", help="list (the default), or:")
    for action, text in {"list": "show all processes", **_ACTIONS}.items():
        subparser = actions.add_parser(action, help=text, description=f"{text[0].upper()}{text[1:]}.")
        subparser.set_defaults(action=action)
        if action in _ACTIONS:
            subparser.add_argument("member", metavar="NAME", help="such as namesrv, broker-a, broker-a-s1")
        # The defaults are those of the parser above; a default here would override its values.
        _add_options(subparser, directory=argparse.SUPPRESS, as_json=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    """Send the command, and print the members as they are after it.

    Raises:
        ClusterError: no cluster was found, or it refused; the text is one line.
    """
    import msgspec

    from rewindmq.cluster.up.ask import ask, find_cluster
    from rewindmq.cluster.up.display import table
    from rewindmq.cluster.up.messages import MemberAction, Request
    from rewindmq.protocol.text import escape_controls

    response = ask(find_cluster(arguments.dir), Request(MemberAction(arguments.action), arguments.member))
    if arguments.json:
        print(msgspec.json.encode(response).decode())
        return 0
    rows = [("member", "state", "address", "pid", "log")]
    rows += [
        (each.name, each.state, each.address, str(each.pid or "-"), each.log) for each in response.members
    ]
    for line in table(rows):
        print(escape_controls(line))
    return 0


def _add_options(parser: argparse.ArgumentParser, directory: str | None, as_json: bool | str) -> None:
    parser.add_argument(
        "--dir",
        type=Path,
        default=directory,
        metavar="DIR",
        help="the cluster's folder (default: that of the only cluster of yours that runs)",
    )
    parser.add_argument("--json", action="store_true", default=as_json, help="print one line of JSON")
