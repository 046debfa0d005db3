"""``rewindmq up``, with the options of the control port."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rewindmq.cluster.up import cli
from rewindmq.cluster.up.cli import EPILOG
from rewindmq.protocol.remoting.process.options import port_number

__all__ = ["EPILOG", "add_arguments", "run"]

_USAGE_ERROR = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    cli.add_arguments(parser)
    group = parser.add_argument_group("control port", "for tests in other languages, see docs/testkit")
    group.add_argument(
        "--control-port",
        type=port_number,
        metavar="PORT",
        help="serve the test kit's control over HTTP at this port of 127.0.0.1; 0 takes any free port",
    )
    group.add_argument(
        "--control-token-file",
        type=Path,
        metavar="FILE",
        help="file with the token that requests need; made if it does not exist (default: DIR/control.token)",
    )
    group.add_argument(
        "--control-snapshot-dir",
        type=Path,
        metavar="DIR",
        help="folder of the files that the port saves snapshots to and loads them from (default: saved in the"
        " cluster's directory)",
    )
    group.add_argument(
        "--wire-port",
        type=port_number,
        metavar="PORT",
        help="port that clients use as the name server's, so that rules see their requests; 0 takes any free"
        " port (default: 0)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the cluster and, with ``--control-port``, the port; see ``rewindmq.cluster.up.cli.run``."""
    if arguments.control_port is None:
        for option in ("control_token_file", "control_snapshot_dir", "wire_port"):
            if getattr(arguments, option) is not None:
                name = "--" + option.replace("_", "-")
                print(f"rewindmq up: {name} needs --control-port, such as --control-port 0", file=sys.stderr)
                return _USAGE_ERROR
        return cli.run(arguments)
    from rewindmq.testing.control.port import ControlPort

    port = ControlPort(
        arguments.control_port,
        arguments.wire_port or 0,
        _absolute(arguments.control_token_file),
        _absolute(arguments.control_snapshot_dir),
    )
    port.check()
    return cli.run(arguments, port.beside)


def _absolute(path: Path | None) -> Path | None:
    return None if path is None else path.absolute()
