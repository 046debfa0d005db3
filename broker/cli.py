"""``rewindmq broker``: the command line of the broker process."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path
from typing import Final

from rewindmq.protocol.profile import RELEASES, Profile
from rewindmq.protocol.remoting.process.collector import loading
from rewindmq.protocol.remoting.process.options import (
    ProcessOptions,
    add_open_access_argument,
    add_process_arguments,
    port_number,
)

EPILOG: Final = """\
examples:
  rewindmq broker -n 127.0.0.1:9876                    listen on 127.0.0.1:10911, store in ~/store
  rewindmq broker -n 127.0.0.1:9876 -c conf/broker.conf   RocketMQ's own property file
  rewindmq broker -n 127.0.0.1:9876 -p 0 --root /tmp/a    any free port, see the ready line

The command line overrides the file, the file overrides NAMESRV_ADDR. One line of JSON on standard output
reports the address when the broker is ready:
  {"ready":"broker","name":"broker-a","address":"127.0.0.1:10911","pid":123}
Ctrl-C or SIGTERM stops it. Exit codes: 0 stopped, 1 could not start, 2 wrong usage.
"""

_FROM_STDIN: Final = "-"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options of ``rewindmq broker``."""
    parser.add_argument(
        "-n",
        "--namesrv-addr",
        metavar="ADDR",
        help="name servers, host:port;host:port (default: namesrvAddr of the file, else NAMESRV_ADDR);"
        " - reads them from the first line of standard input",
    )
    parser.add_argument(
        "-c", "--config", type=Path, metavar="FILE", help="property file: brokerName=broker-a ..."
    )
    parser.add_argument(
        "--strict", action="store_true", help="refuse a file with unknown keys, instead of ignoring them"
    )
    parser.add_argument(
        "-p", "--port", type=port_number, metavar="PORT", help="0 takes a free one (default: 10911)"
    )
    parser.add_argument("--host", metavar="HOST", help="interface to listen on (default: 127.0.0.1)")
    add_open_access_argument(parser)
    parser.add_argument("--root", type=Path, metavar="DIR", help="directory of the store (default: ~/store)")
    parser.add_argument(
        "--profile", choices=[profile.value for profile in RELEASES], help="release to imitate (default: v49)"
    )
    parser.add_argument(
        "--events",
        type=Path,
        metavar="FILE",
        help="append one line of JSON to a file or named pipe for each trace point (a commit received, a pull"
        " answered, ...)",
    )
    add_process_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Serve until told to stop.

    Raises:
        ConfigError: if the configuration cannot be used, or would let other machines connect without saying
            so.
        StoreError: if the store cannot be opened.
        OSError: if the port cannot be bound, or the file of events cannot be written.
    """
    with loading():
        from rewindmq.broker.broker import Broker
        from rewindmq.broker.config import read_broker_config
        from rewindmq.protocol.remoting.process.open_access import refuse_open_access
        from rewindmq.protocol.remoting.process.point_log import PointLog
        from rewindmq.protocol.remoting.process.runner import configure_log, read_parent_line, run_process
        from rewindmq.protocol.remoting.process.speedups import load_speedups
        from rewindmq.protocol.remoting.runtime import Runtime, SystemClock

    options = ProcessOptions.from_arguments(arguments)
    configure_log(options.log_level)
    namesrv_addr = arguments.namesrv_addr
    config = read_broker_config(
        arguments.config,
        is_strict=arguments.strict,
        fallback_namesrv_addr=os.environ.get("NAMESRV_ADDR"),
        namesrv_addr=None if namesrv_addr == _FROM_STDIN else namesrv_addr,
        listen_port=arguments.port,
        bind_address=arguments.host,
        allow_open_access=arguments.allow_open_access or None,
        store_path_root_dir=None if arguments.root is None else str(arguments.root),
        profile=None if arguments.profile is None else Profile(arguments.profile),
    )
    refuse_open_access(config.bind_address, allow_open_access=config.allow_open_access)
    if namesrv_addr == _FROM_STDIN:
        config = config.with_namesrv_addr(read_parent_line())
    probe = None if arguments.events is None else PointLog(arguments.events, SystemClock(options.time_scale))
    name = {"name": config.broker_name}
    speedups = load_speedups()

    def new_broker(runtime: Runtime) -> Broker:
        return Broker(replace(runtime, speedups=speedups), config)

    return run_process("broker", new_broker, options, name, probe)
