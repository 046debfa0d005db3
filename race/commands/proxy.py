"""``rewindmq race proxy``: hold and release frames between a client and a cluster by hand."""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from rewindmq.protocol.remoting.process.options import add_open_access_argument, port_number

if TYPE_CHECKING:
    import asyncio

    from rewindmq.protocol.remoting.runtime import Runtime
    from rewindmq.race.proxy.frame_proxy import FrameProxy
    from rewindmq.race.proxy.frame_rule import FrameRule
    from rewindmq.race.proxy.pattern import FramePattern

_STDIN: Final = 0
_READ_BYTES: Final = 4_096

EPILOG: Final = """\
Configure the client with the proxy's address instead of the name server's. The proxy prints one line of JSON
per frame.

A pattern is CODE [request|oneway|response] [answer=CODE] [client=NAME] [server=NAME] [NAME=VALUE ...]
[skip=N] [count=N|all] [blocks]:
  CODE             number or RocketMQ's name of the request code; for a response, that of its request
  answer=CODE      match only responses, with this response code
  NAME=VALUE       match only this value of an ext field; for a response, of a field of its request;
                   group=VALUE matches consumerGroup and producerGroup, too
  client=NAME      match only frames to or from this client, as the proxy's output names it
  server=NAME      match only frames to or from this server: namesrv, broker-a
  skip=N           pass on the first N matching frames
  count=N|all      catch N matching frames (default: 1) or all of them
  blocks           later frames of the same connection and direction wait behind a held frame
Without request, oneway or response, a pattern matches requests and oneway requests, but no responses.

commands on standard input:
  hold PATTERN     catch further frames; holds are numbered from 1
  list             print the holds and the frames in them
  release [N]      pass on the frames of hold N (default: all holds) and end the hold
  drop [N]         drop the frames of hold N (default: all holds) and end the hold
The proxy answers each command with one line of JSON: docs/race/proxy.md describes them.

examples:
  rewindmq race proxy --namesrv 127.0.0.1:9876 --hold 'PULL_MESSAGE response queueId=0 skip=1'
  rewindmq race proxy --namesrv 127.0.0.1:9876 --port 9877 --hold RESET_CONSUMER_CLIENT_OFFSET --quiet

exit codes: 0 stopped by SIGINT or SIGTERM, 1 no server at ADDR or the port is in use, 2 wrong usage
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument(
        "--namesrv", required=True, metavar="ADDR", help="the cluster's name server, host:port"
    )
    parser.add_argument("--host", default="127.0.0.1", help="interface to listen on (default: 127.0.0.1)")
    add_open_access_argument(parser)
    parser.add_argument(
        "--port",
        type=port_number,
        default=0,
        metavar="PORT",
        help="port that the client uses as its name server (default: 0, any free port)",
    )
    parser.add_argument(
        "--hold", action="append", default=[], metavar="PATTERN", help="catch these frames; repeatable"
    )
    parser.add_argument("--name", default="client", help="name of the client in the events (default: client)")
    parser.add_argument(
        "--quiet", action="store_true", help="print only frames that are held, released or dropped"
    )
    parser.add_argument("--exit-with-parent", action="store_true", help="stop when standard input ends")


def run(arguments: argparse.Namespace) -> int:
    """Run until a signal arrives or, with ``--exit-with-parent``, standard input ends."""
    from rewindmq.protocol.remoting.process.open_access import refuse_open_access
    from rewindmq.protocol.remoting.process.options import ProcessOptions
    from rewindmq.protocol.remoting.process.runner import run_work
    from rewindmq.race.proxy.pattern_text import parse_pattern

    refuse_open_access(
        arguments.host, allow_open_access=arguments.allow_open_access, remedy="pass --allow-open-access"
    )
    patterns = [parse_pattern(text) for text in arguments.hold]

    async def work(runtime: Runtime, stopping: asyncio.Event) -> int:
        return await _serve(runtime, stopping, arguments, patterns)

    return run_work(work, ProcessOptions(log_level="error"))


async def _serve(
    runtime: Runtime,
    stopping: asyncio.Event,
    arguments: argparse.Namespace,
    patterns: list[FramePattern],
) -> int:
    import asyncio

    from rewindmq.race.history import Event, Lab
    from rewindmq.race.proxy.frame_proxy import FrameProxy

    start = runtime.clock.monotonic()
    unseen = frozenset((Lab.FRAME_SENT, Lab.FRAME_ARRIVED)) if arguments.quiet else frozenset()

    def record(kind: Lab, process: str, details: dict[str, Any]) -> None:
        if kind not in unseen:
            print(Event(runtime.clock.monotonic() - start, process, kind, details).to_json(), flush=True)

    proxy = FrameProxy(
        runtime,
        arguments.namesrv,
        record,
        client_name=arguments.name,
        host=arguments.host,
        port=arguments.port,
    )
    console = _Console(proxy, patterns)
    try:
        await proxy.start()
        _say({"ready": "proxy", "address": proxy.address, "pid": os.getpid()})
        console.begin()
        loop = asyncio.get_running_loop()
        at_end = stopping.set if arguments.exit_with_parent else None
        threading.Thread(target=_read_lines, args=(loop, console.carry_out, at_end), daemon=True).start()
        await stopping.wait()
    finally:
        await proxy.close()
    return 0


class _Console:
    """Executes the commands of standard input."""

    def __init__(self, proxy: FrameProxy, patterns: list[FramePattern]) -> None:
        self._proxy = proxy
        self._holds: list[FrameRule] = []
        self._patterns = patterns

    def begin(self) -> None:
        """Put the holds of the command line in force."""
        for pattern in self._patterns:
            self._add(pattern)

    def carry_out(self, line: str) -> None:
        """Execute one line; print an error on standard output, like everything else."""
        from rewindmq.race.errors import RaceError
        from rewindmq.race.proxy.pattern_text import parse_pattern

        command, _, rest = line.strip().partition(" ")
        try:
            if command == "list":
                self._list()
            elif command == "hold":
                self._add(parse_pattern(rest))
            elif command in ("release", "drop"):
                for number, hold in self._chosen(rest.strip()):
                    count = len(hold.held)
                    hold.release() if command == "release" else hold.drop()
                    _say({"ended": command, "hold": number, "frames": count})
            elif command:
                raise RaceError(f"unknown command {command!r}: hold, list, release or drop")
        except RaceError as error:
            _say({"error": str(error)})

    def _add(self, pattern: FramePattern) -> None:
        from rewindmq.race.proxy.pattern_text import format_pattern

        self._holds.append(self._proxy.hold(pattern))
        _say({"hold": len(self._holds), "pattern": format_pattern(pattern)})

    def _list(self) -> None:
        from rewindmq.race.proxy.pattern_text import format_pattern

        _say(
            {
                "holds": [
                    {
                        "number": number,
                        "pattern": format_pattern(hold.pattern),
                        "caught": hold.caught,
                        "kept": [frame.details for frame in hold.held],
                    }
                    for number, hold in enumerate(self._holds, 1)
                ]
            }
        )

    def _chosen(self, word: str) -> list[tuple[int, FrameRule]]:
        from rewindmq.race.errors import RaceError

        if not word:
            return list(enumerate(self._holds, 1))
        if word.isascii() and word.isdigit() and 1 <= int(word) <= len(self._holds):
            return [(int(word), self._holds[int(word) - 1])]
        raise RaceError(f"there is no hold {word!r}; there are {len(self._holds)}, numbered from 1")


def _read_lines(
    loop: asyncio.AbstractEventLoop, carry_out: Callable[[str], None], at_end: Callable[[], None] | None
) -> None:
    """Read standard input in a thread, because an event loop cannot watch every kind of file."""
    rest = b""
    while data := _read():
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            _call(loop, carry_out, line.decode("utf-8", "replace"))
    if at_end is not None:
        _call(loop, at_end)


def _read() -> bytes:
    # Not sys.stdin: a thread that waits in it would hold its lock at the end of the process.
    try:
        return os.read(_STDIN, _READ_BYTES)
    except OSError:
        return b""


def _call(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *arguments: str) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(function, *arguments)


def _say(value: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(value, separators=(",", ":")) + "\n")
    sys.stdout.flush()
