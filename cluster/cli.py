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
from rewindmq.protocol.remoting.process.options import (
    LOG_LEVELS,
    add_open_access_argument,
    port_number,
    positive_factor,
)

if TYPE_CHECKING:
    from rewindmq.cluster.local_cluster import LocalCluster
    from rewindmq.cluster.server_process import ServerProcess

NAMESRV_PORT: Final = 9876
_WATCH_SECONDS: Final = 0.5
_KEY: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*", re.ASCII)
# Keys of broker.conf that differ between brokers, or that another option sets.
_SET_BY: Final = {
    "brokerName": "--brokers",
    "brokerId": "--slaves",
    "namesrvAddr": "--port",
    "listenPort": "--broker-port",
    "haListenPort": "each broker, to any free port",
    "haMasterAddress": "--slaves",
    "bindAddress": "--host",
    "allowOpenAccess": "--allow-open-access",
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

Ctrl-C or SIGTERM stops all processes. Exit codes: 0 stopped, 1 a process could not start, 2 wrong usage.
"""


class _StopRequested(BaseException):
    """Raised by a stop signal; a ``BaseException``, so that handlers of errors do not catch it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options of ``rewindmq up``."""
    parser.add_argument(
        "--brokers",
        type=_broker_count,
        default=2,
        metavar="N",
        help=f"number of brokers, 1 to {MAX_BROKERS} (default: 2)",
    )
    parser.add_argument(
        "--slaves",
        type=int,
        choices=range(MAX_SLAVES + 1),
        default=0,
        help="number of slaves of each broker (default: 0)",
    )
    parser.add_argument(
        "--dir",
        type=Path,
        metavar="DIR",
        help="keep stores, configurations and logs here (default: a temporary directory, removed at the end)",
    )
    parser.add_argument(
        "-p",
        "--port",
        type=port_number,
        default=NAMESRV_PORT,
        metavar="PORT",
        help="the name server's port; 0 takes any free port (default: 9876)",
    )
    parser.add_argument(
        "--broker-port",
        type=port_number,
        default=0,
        metavar="PORT",
        help="broker-a's port; each further broker's is 10 higher (default: 0, any free ports)",
    )
    parser.add_argument("--host", default="127.0.0.1", help="interface to listen on (default: 127.0.0.1)")
    add_open_access_argument(parser)
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
        help="factor on every scheduled wait of every process: 0.01 turns 10 s into 0.1 s (default: 1)",
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
        help="set a key of broker.conf at all brokers; may be repeated",
    )
    parser.add_argument(
        "--log-level",
        choices=LOG_LEVELS,
        default="info",
        help="lowest level that the processes log (default: info)",
    )
    parser.add_argument(
        "--ready-json", action="store_true", help="print one line of JSON instead of the table"
    )


def run(arguments: argparse.Namespace) -> int:
    """Run a cluster until SIGINT, SIGTERM or SIGHUP.

    Raises:
        ClusterError: a process could not start; nothing is left running.
        ConfigError: other machines could connect, and ``--allow-open-access`` was not given.
        OSError: the directory cannot be written.
    """
    from rewindmq.cluster.local_cluster import LocalCluster
    from rewindmq.protocol.remoting.process.open_access import refuse_open_access

    refuse_open_access(
        arguments.host, allow_open_access=arguments.allow_open_access, remedy="pass --allow-open-access"
    )
    cluster = LocalCluster(
        arguments.brokers,
        slaves=arguments.slaves,
        directory=arguments.dir,
        namesrv_port=arguments.port,
        broker_port=arguments.broker_port,
        host=arguments.host,
        allow_open_access=arguments.allow_open_access,
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
    """Print one line for each process that ends by itself; the others continue."""
    running = {process.name: process for process in _processes(cluster)}
    tick = threading.Event()
    while True:
        tick.wait(_WATCH_SECONDS)
        for name, process in list(running.items()):
            if not process.is_running:
                del running[name]
                print(f"rewindmq up: {name} has ended, see {process.log_path}", file=sys.stderr)


def _processes(cluster: LocalCluster) -> tuple[ServerProcess, ...]:
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
    processes = _processes(cluster)
    rows = [("process", "address", "pid", "log")]
    rows += [
        (process.name, process.address, str(process.pid), str(process.log_path)) for process in processes
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join(
        [
            *(line.rstrip() for line in lines),
            "",
            f"export NAMESRV_ADDR={cluster.namesrv_address}",
            "ready; Ctrl-C stops all processes",
        ]
    )
