"""``rewindmq dashboard``: serve web pages about a cluster."""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rewindmq.protocol.remoting.process.options import (
    DASHBOARD_PORT,
    ProcessOptions,
    port_number,
    positive_factor,
)

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from rewindmq.protocol.remoting.runtime import Runtime

EPILOG: Final = """\
examples:
  rewindmq dashboard -n 127.0.0.1:9876              http://127.0.0.1:8082, on this machine only
  rewindmq dashboard --read-only                    look, and change nothing
  REWINDMQ_DASHBOARD_TOKEN=... rewindmq dashboard --host 0.0.0.0

Exit codes: 0 stopped, 1 failed (one line on stderr says why), 2 wrong usage.
"""
# Python's own is 0.005; a static file waits up to ten times.
_SWITCH_SECONDS: Final = 0.000_5
_TOKEN_VARIABLE: Final = "REWINDMQ_DASHBOARD_TOKEN"  # noqa: S105 - a name


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options of ``dashboard``."""
    parser.add_argument(
        "-n", "--namesrv", metavar="ADDR", help="host:port[;host:port] (default: NAMESRV_ADDR)"
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to serve at (default: 127.0.0.1)")
    parser.add_argument(
        "--port",
        type=port_number,
        default=DASHBOARD_PORT,
        help=f"0: any free one (default: {DASHBOARD_PORT})",
    )
    parser.add_argument(
        "--token",
        help="what a visitor must know; required if other machines can connect"
        f" (default: {_TOKEN_VARIABLE}, which other users of this machine do not see)",
    )
    parser.add_argument(
        "--exit-with-parent",
        action="store_true",
        help="stop when standard input, a pipe from the parent, is closed",
    )
    parser.add_argument(
        "--time-scale",
        type=positive_factor,
        default=1.0,
        metavar="X",
        help="the cluster's: proofs of resets wait for its commits and rebalances (default: 1)",
    )
    parser.add_argument(
        "--history",
        type=Path,
        metavar="DIR",
        help="folder in which each reset of the pages leaves a record (default: in memory)",
    )
    parser.add_argument("--read-only", action="store_true", help="refuse every change")


def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM, and return the exit code.

    Raises:
        ClientError: the extra is not installed, other machines could connect without a token, the name server
            is not named, the port is taken, or the folder of the history cannot be used.
    """
    from rewindmq.protocol.errors import ClientError
    from rewindmq.protocol.remoting.process.open_access import is_loopback
    from rewindmq.protocol.remoting.process.runner import run_work

    token = os.environ.get(_TOKEN_VARIABLE) if arguments.token is None else arguments.token
    if token == "":
        raise ClientError(
            f"the token is empty: name a secret with --token or {_TOKEN_VARIABLE}, or set neither"
        )
    if token is not None and not (token.isascii() and token.isprintable()):
        raise ClientError(
            "the token must be printable ASCII: other characters do not fit into an HTTP header"
        )
    if token is None and not is_loopback(arguments.host):
        raise ClientError(
            f"{arguments.host!r} is not a loopback address: set {_TOKEN_VARIABLE} to a secret that visitors"
            " must enter, or serve at 127.0.0.1"
        )
    if not (arguments.namesrv or os.environ.get("NAMESRV_ADDR")):
        raise ClientError("no name server: give -n HOST:PORT, or set NAMESRV_ADDR")
    try:
        import jinja2  # noqa: F401
        import prometheus_client  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise ClientError(f"needs {error.name}: pip install 'rewindmq[dashboard]'") from None

    async def work(runtime: Runtime, stopping: asyncio.Event) -> int:
        return await _serve(arguments, token, runtime, stopping)

    options = ProcessOptions(
        time_scale=arguments.time_scale,
        log_level="warning",
        exit_with_parent=arguments.exit_with_parent,
    )
    return run_work(work, options)


async def _serve(
    arguments: argparse.Namespace, token: str | None, runtime: Runtime, stopping: asyncio.Event
) -> int:
    from rewindmq.client.admin.admin_client import AdminClient
    from rewindmq.dashboard.app import make_app
    from rewindmq.dashboard.data.cluster_source import ClusterSource
    from rewindmq.dashboard.resets.history import open_folder
    from rewindmq.dashboard.web.page import DashboardSettings

    # While a thread makes a page or metrics, the event loop waits so long each time it has something to do.
    sys.setswitchinterval(_SWITCH_SECONDS)
    hosts = frozenset() if token else frozenset({arguments.host, "127.0.0.1", "localhost", "::1"})
    settings = DashboardSettings(secrets.token_urlsafe(), arguments.read_only, token, hosts)
    async with AsyncExitStack() as stack:
        admin = await stack.enter_async_context(AdminClient(arguments.namesrv, runtime=runtime))
        history = None
        if arguments.history is not None:
            history = await stack.enter_async_context(open_folder(arguments.history, runtime.workers))
        app = make_app(ClusterSource(admin), settings, history)
        url = await stack.enter_async_context(_listening(app, arguments.host, arguments.port))
        print(f"dashboard: {url}", flush=True)
        await stopping.wait()
    return 0


@asynccontextmanager
async def _listening(app: ASGIApp, host: str, port: int) -> AsyncIterator[str]:
    from rewindmq.dashboard.serving import serving
    from rewindmq.protocol.errors import ClientError

    async with AsyncExitStack() as stack:
        try:
            url = await stack.enter_async_context(serving(app, host, port))
        except OSError as error:
            # Its own text repeats the address in another form.
            why = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
            raise ClientError(
                f"cannot listen on {host}:{port}: {why}; choose another --port (0: any free one) or --host"
            ) from None
        yield url
