"""``rewindmq up``: a local cluster in the foreground."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Coroutine
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rewindmq.cluster.errors import ClusterError
from rewindmq.cluster.names import MAX_BROKERS, MAX_SLAVES
from rewindmq.cluster.up.advertise import resolve_advertised
from rewindmq.protocol.limits import MAX_QUEUE_NUMS
from rewindmq.protocol.names import is_system_topic, topic_fault
from rewindmq.protocol.profile import RELEASES, Profile
from rewindmq.protocol.remoting.process.options import (
    DASHBOARD_PORT,
    LOG_LEVELS,
    add_open_access_argument,
    port_number,
    positive_factor,
)

if TYPE_CHECKING:
    from rewindmq.cluster.local_cluster import LocalCluster
    from rewindmq.cluster.up.companion import Companion

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
  rewindmq up --topic orders:4 --topic bills    two topics, there before it says ready
  rewindmq up --host 0.0.0.0 --allow-open-access --advertise rewindmq   in a container, see docs/docker.md
  rewindmq up --dashboard                       with web pages at http://127.0.0.1:8082
  rewindmq up --flush SYNC_FLUSH --time-scale 0.05
  rewindmq up --profile v53 --set resetMode=fenced

With --dir, the next start has the same ports. From another shell: rewindmq members --help
Ctrl-C or SIGTERM stops all processes. Exit codes: 0 stopped by SIGTERM or SIGHUP, 1 the cluster could
not start (the line on stderr says why), 2 wrong usage, 130 stopped by Ctrl-C.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options of ``rewindmq up``."""
    _add_size_arguments(parser)
    _add_address_arguments(parser)
    _add_broker_arguments(parser)
    parser.add_argument(
        "--log-level",
        choices=LOG_LEVELS,
        default="info",
        help="lowest level that the processes log (default: info)",
    )
    parser.add_argument(
        "--ready-json", action="store_true", help="print one line of JSON instead of the table"
    )


def _add_size_arguments(parser: argparse.ArgumentParser) -> None:
    """Define how many processes there are, and where they store."""
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


def _add_address_arguments(parser: argparse.ArgumentParser) -> None:
    """Define ports and addresses."""
    parser.add_argument(
        "-p",
        "--port",
        type=port_number,
        metavar="PORT",
        help="the name server's port; 0 takes the one that DIR remembers, else any free port"
        " (default: the one that DIR remembers, else 9876)",
    )
    parser.add_argument(
        "--broker-port",
        type=port_number,
        default=0,
        metavar="PORT",
        help="broker-a's port; each further broker's is 10 higher (default: 0, the ports that DIR remembers,"
        " else any free ports)",
    )
    parser.add_argument(
        "--new-ports", action="store_true", help="forget the ports that DIR remembers, and remember new ones"
    )
    parser.add_argument("--host", default="127.0.0.1", help="interface to listen on (default: 127.0.0.1)")
    parser.add_argument(
        "--advertise",
        metavar="HOST",
        help="address that brokers register, if clients cannot use --host; a name is resolved at the start",
    )
    add_open_access_argument(parser)


def _add_broker_arguments(parser: argparse.ArgumentParser) -> None:
    """Define what the brokers do."""
    parser.add_argument(
        "--topic",
        type=_topic,
        action="append",
        default=[],
        metavar="NAME[:QUEUES]",
        help="create a topic at each broker before the cluster is ready, such as orders:4; 4 queues if the"
        " number is left out; may be repeated",
    )
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
        "--dashboard",
        nargs="?",
        type=port_number,
        const=DASHBOARD_PORT,
        metavar="PORT",
        help="also run `rewindmq dashboard` at this port of 127.0.0.1; 0 takes any free port"
        f" (default without PORT: {DASHBOARD_PORT})",
    )


def run(arguments: argparse.Namespace, companion: Companion | None = None) -> int:
    """Run a cluster until SIGINT, SIGTERM or SIGHUP; return the exit code.

    Args:
        companion: runs beside the cluster.

    Raises:
        ClusterError: a process could not start; nothing is left running.
        ConfigError: other machines could connect, and ``--allow-open-access`` was not given.
        OSError: the directory cannot be written.
    """
    import asyncio

    from rewindmq.cluster.up.folder import locked
    from rewindmq.cluster.up.foreground import Foreground
    from rewindmq.protocol.remoting.process.open_access import refuse_open_access

    refuse_open_access(
        arguments.host, allow_open_access=arguments.allow_open_access, remedy="pass --allow-open-access"
    )
    directory = None if arguments.dir is None else arguments.dir.absolute()
    foreground = Foreground(
        {
            "brokers": arguments.brokers,
            "slaves": arguments.slaves,
            "host": arguments.host,
            "allow_open_access": arguments.allow_open_access,
            "time_scale": arguments.time_scale,
            "profile": Profile(arguments.profile),
            "broker_config": _broker_config(arguments),
            "log_level": arguments.log_level,
        },
        directory,
        arguments.port,
        arguments.broker_port,
        arguments.new_ports,
        _topics(arguments.topic),
        arguments.ready_json,
        companion,
        arguments.dashboard,
    )
    with nullcontext() if directory is None else locked(directory), asyncio.Runner() as runner:
        # Before the coroutine exists: Ctrl-C in between would warn that it was never awaited.
        runner.get_loop()
        return runner.run(foreground.run())


def _broker_config(arguments: argparse.Namespace) -> dict[str, object]:
    config: dict[str, object] = {"flushDiskType": arguments.flush}
    if arguments.advertise is not None:
        if "brokerIP1" in dict(arguments.settings):
            raise ClusterError("--advertise sets brokerIP1: omit one of them")
        config["brokerIP1"] = resolve_advertised(arguments.advertise)
    return config | dict(arguments.settings)


def _topics(
    wanted: list[tuple[str, int | None]],
) -> Callable[[LocalCluster], Coroutine[Any, Any, None]] | None:
    """Return what creates the topics; None if none is wanted, so that no client is loaded."""
    if not wanted:
        return None

    async def create(cluster: LocalCluster) -> None:
        from rewindmq.cluster.up.topics import create_topics

        await create_topics(cluster, wanted)

    return create


def _topic(text: str) -> tuple[str, int | None]:
    """Read ``NAME`` or ``NAME:QUEUES``."""
    name, colon, queues = text.partition(":")
    wrong = f"must be NAME or NAME:QUEUES, such as orders:4, not {text!r}"
    fault = topic_fault(name)
    if fault is not None:
        raise argparse.ArgumentTypeError(f"{wrong}: {fault}")
    if is_system_topic(name):
        raise argparse.ArgumentTypeError(f"{wrong}: {name} is a topic of the brokers themselves")
    if not colon:
        return name, None
    is_number = len(queues) <= 5 and queues.isascii() and queues.isdigit()
    if not (is_number and 1 <= int(queues) <= MAX_QUEUE_NUMS):
        raise argparse.ArgumentTypeError(f"{wrong}: QUEUES is 1 to {MAX_QUEUE_NUMS}")
    return name, int(queues)


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
