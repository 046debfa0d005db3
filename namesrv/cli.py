"""``rewindmq namesrv``: the command line of the name-server process."""

from __future__ import annotations

import argparse
import os
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
  rewindmq namesrv                              listen on 127.0.0.1:9876
  rewindmq namesrv --host 0.0.0.0 --allow-open-access   serve other machines too, see SECURITY.md
  rewindmq namesrv -p 0 --root /tmp/ns          any free port, see the ready line
  rewindmq namesrv -c conf/namesrv.properties   RocketMQ's own property file

One line of JSON on standard output reports the address when the server is ready:
  {"ready":"namesrv","address":"127.0.0.1:9876","pid":123}
Ctrl-C or SIGTERM stops it. Exit codes: 0 stopped, 1 could not start, 2 wrong usage.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options of ``rewindmq namesrv``."""
    parser.add_argument(
        "-p", "--port", type=port_number, metavar="PORT", help="0 takes a free one (default: 9876)"
    )
    parser.add_argument("--host", metavar="HOST", help="interface to listen on (default: 127.0.0.1)")
    add_open_access_argument(parser)
    parser.add_argument(
        "-c", "--config", type=Path, metavar="FILE", help="property file: listenPort=9876 ..."
    )
    parser.add_argument(
        "--root",
        type=Path,
        metavar="DIR",
        help="home directory, which contains namesrv/kvConfig.json (default: ROCKETMQ_HOME, else ~)",
    )
    parser.add_argument(
        "--profile", choices=[profile.value for profile in RELEASES], help="release to imitate (default: v49)"
    )
    add_process_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Serve until told to stop.

    Raises:
        ConfigError: the configuration or the KV file cannot be used, or the configuration would let other
            machines connect without saying so.
        OSError: the port cannot be bound.
    """
    with loading():
        import msgspec

        from rewindmq.namesrv.config import read_namesrv_config
        from rewindmq.namesrv.server import NameServer
        from rewindmq.protocol.remoting.process.open_access import refuse_open_access
        from rewindmq.protocol.remoting.process.runner import configure_log, run_process

    options = ProcessOptions.from_arguments(arguments)
    configure_log(options.log_level)
    config = read_namesrv_config(
        arguments.config,
        listen_port=arguments.port,
        bind_address=arguments.host,
        allow_open_access=arguments.allow_open_access or None,
        rocketmq_home=None if arguments.root is None else str(arguments.root),
        profile=None if arguments.profile is None else Profile(arguments.profile),
    )
    refuse_open_access(config.bind_address, allow_open_access=config.allow_open_access)
    if not (config.rocketmq_home or config.kv_config_path):
        home = os.environ.get("ROCKETMQ_HOME") or str(Path.home())
        config = msgspec.structs.replace(config, rocketmq_home=home)
    return run_process("namesrv", lambda runtime: NameServer(runtime, config), options)
