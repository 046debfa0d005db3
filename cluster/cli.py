"""``rewindmq up``: a local cluster in the foreground."""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final, NoReturn

from rewindmq.cluster.names import MAX_BROKERS, MAX_SLAVES
from rewindmq.cluster.signals import stop_signals
from rewindmq.protocol.profile import RELEASES, Profile
from rewindmq.protocol.remoting.process.options import LOG_LEVELS, port_number, positive_factor

if TYPE_CHECKING:
    from rewindmq.cluster.local_cluster import LocalCluster
    from rewindmq.cluster.member import Member

NAMESRV_PORT: Final = 9876
_WATCH_SECONDS: Final = 0.5
_KEY: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*", re.ASCII)
# Keys of broker.conf that no two brokers share, or that an option sets.
_SET_BY: Final = {
    "brokerName": "--brokers",
    "brokerId": "--slaves",
    "namesrvAddr": "--port",
    "listenPort": "--broker-port",
    "haListenPort": "each broker, to any free port",
    "haMasterAddress": "--slaves",
    "bindAddress": "--host",
    "storePathRootDir": "--dir",
    "flushDiskType": "--flush",
    "profile": "--profile",
}

EPILOG: Final = """\
examples:
  rewindmq up                                   a name server at 9876 and two brokers
  rewindmq up --brokers 3 --dir ./rewindmq-data keep stores, configurations and logs
  rewindmq up -p 0 --ready-json                 any free ports, one line of JSON says which
  rewindmq up --flush SYNC_FLUSH --time-scale 0.05
  rewindmq up --profile v53 --set resetMode=server

Ctrl-C or SIGTERM stops all members. Exit codes: 0 stopped, 1 a member could not start, 2 wrong usage.
"""


class _StopRequested(BaseException):
    """A signal to stop arrived; not an error, and nothing may take it for one."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options of ``rewindmq up``."""
    parser.add_argument(
        "--brokers", type=_broker_count, default=2, metavar="N", help=f"1 to {MAX_BROKERS} (default: 2)"
    )
    parser.add_argument(
        "--slaves", type=int, choices=range(MAX_SLAVES + 1), default=0, help="of each broker (default: 0)"
    )
    parser.add_argument(
        "--dir", type=Path, metavar="DIR", help="keep everything here (default: a temporary directory)"
    )
    parser.add_argument(
        "-p",
        "--port",
        type=port_number,
        default=NAMESRV_PORT,
        metavar="PORT",
        help="the name server's port, 0 takes a free one (default: 9876)",
    )
    parser.add_argument(
        "--broker-port",
        type=port_number,
        default=0,
        metavar="PORT",
        help="broker-a's port, the next ones 10 apart (default: 0, any free ones)",
    )
    parser.add_argument("--host", default="127.0.0.1", help="interface to listen on (default: 127.0.0.1)")
    parser.add_argument(
        "--flush",
        choices=("ASYNC_FLUSH", "SYNC_FLUSH"),
        default="ASYNC_FLUSH",
        help="whether a send waits for the disk (default: ASYNC_FLUSH)",
    )
    parser.add_argument(
        "--time-scale",
        type=positive_factor,
        default=1.0,
        metavar="X",
        help="shorten every wait of every member: 0.01 turns 10 s into 0.1 s (default: 1)",
    )
    parser.add_argument(
        "--profile",
        choices=[profile.value for profile in RELEASES],
        default=Profile.V49.value,
        help="release to imitate (default: v49)",
    )
    parser.add_argument(
        "--set",
        dest="settings",
        type=_setting,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a key of broker.conf, of all brokers; may be repeated",
    )
    parser.add_argument(
        "--log-level", choices=LOG_LEVELS, default="info", help="of the members' log files (default: info)"
    )
    parser.add_argument("--ready-json", action="store_true", help="print one line of JSON, and no table")


def run(arguments: argparse.Namespace) -> int:
    """Run a cluster until SIGINT, SIGTERM or SIGHUP.

    Raises:
        ClusterError: a member could not start; nothing is left running.
        OSError: the directory cannot be written.
    """
    from rewindmq.cluster.local_cluster import LocalCluster

    cluster = LocalCluster(
        arguments.brokers,
        slaves=arguments.slaves,
        directory=arguments.dir,
        namesrv_port=arguments.port,
        broker_port=arguments.broker_port,
        host=arguments.host,
        time_scale=arguments.time_scale,
        profile=Profile(arguments.profile),
        broker_config={"flushDiskType": arguments.flush, **dict(arguments.settings)},
        log_level=arguments.log_level,
    )
    for number in stop_signals():
        signal.signal(number, _request_stop)
    try:
        with cluster:
            print(_ready_json(cluster) if arguments.ready_json else _table(cluster), flush=True)
            _watch(cluster)
    except _StopRequested:
        return 0


def _broker_count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= MAX_BROKERS):
        raise argparse.ArgumentTypeError(f"must be 1 to {MAX_BROKERS}, not {text!r}")
    return int(text)


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = (part.strip() for part in text.partition("="))
    # The key is written into a file as it is.
    if not equals or _KEY.fullmatch(key) is None:
        raise argparse.ArgumentTypeError(f"must be KEY=VALUE, not {text!r}")
    if key in _SET_BY:
        raise argparse.ArgumentTypeError(f"{key} is set by {_SET_BY[key]}")
    return key, value


def _request_stop(number: int, frame: FrameType | None) -> None:
    # A second signal must not interrupt the stop that the first one began.
    for each in stop_signals():
        signal.signal(each, signal.SIG_IGN)
    raise _StopRequested


def _watch(cluster: LocalCluster) -> NoReturn:
    """Say once when a member ends by itself; the others go on."""
    running = {member.name: member for member in _members(cluster)}
    tick = threading.Event()
    while True:
        tick.wait(_WATCH_SECONDS)
        for name, member in list(running.items()):
            if not member.is_running:
                del running[name]
                print(f"rewindmq up: {name} has ended, see {member.log_path}", file=sys.stderr)


def _members(cluster: LocalCluster) -> tuple[Member, ...]:
    return (cluster.namesrv, *cluster.brokers.values(), *cluster.slaves.values())


def _ready_json(cluster: LocalCluster) -> str:
    ready = {
        "ready": "cluster",
        "namesrv": {"address": cluster.namesrv_address, "pid": cluster.namesrv.pid},
        "brokers": {
            name: {"address": broker.address, "pid": broker.pid}
            for name, broker in (cluster.brokers | cluster.slaves).items()
        },
        "directory": str(cluster.directory),
        "pid": os.getpid(),
    }
    return json.dumps(ready, separators=(",", ":"))


def _table(cluster: LocalCluster) -> str:
    members = _members(cluster)
    rows = [("member", "address", "pid", "log")]
    rows += [(member.name, member.address, str(member.pid), str(member.log_path)) for member in members]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join(
        [
            *(line.rstrip() for line in lines),
            "",
            f"export NAMESRV_ADDR={cluster.namesrv_address}",
            "ready; Ctrl-C stops all members",
        ]
    )
