"""The command `rewindmq race proxy`."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.command import SerializeType
from tests.race.proxy.venue import PATIENCE, Offsets, Venue, commit

ONLY_PROXY = (
    "import sys; from rewindmq import __main__ as main;"
    "main.COMMANDS = {'proxy': main.Command('rewindmq.race.commands.proxy', 'hold frames')};"
    "sys.exit(main.main(sys.argv[1:]))"
)


@contextlib.asynccontextmanager
async def command(*arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """The command as a process; killed at the end if it still runs."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", ONLY_PROXY, "proxy", *arguments, stdin=pipe, stdout=pipe, stderr=pipe
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_commands_hold_list_and_release_a_frame() -> None:
    async with AsyncExitStack() as exits:
        venue = Venue(None, exits)
        upstream = await venue.server(Offsets().handlers())
        arguments = ("--namesrv", upstream, "--hold", "UPDATE_CONSUMER_OFFSET queueId=0", "--quiet")
        process = await exits.enter_async_context(command(*arguments))
        stdin, stdout = process.stdin, process.stdout
        assert stdin is not None
        assert stdout is not None

        async def said() -> dict[str, Any]:
            async with asyncio.timeout(PATIENCE):
                return dict(json.loads(await stdout.readline()))

        async def say(line: str) -> None:
            stdin.write(line.encode() + b"\n")
            await stdin.drain()

        ready = await said()
        assert (ready["ready"], ready["pid"]) == ("proxy", process.pid)
        assert await said() == {"hold": 1, "pattern": "UPDATE_CONSUMER_OFFSET queueId=0"}
        client = venue.client(serialize_type=SerializeType.JSON)
        call = client.invoke(ready["address"], commit(7), PATIENCE)
        held = await said()
        assert (held["kind"], held["details"]["fields"]["commitOffset"]) == ("frame.held", 7)
        assert held["details"]["source"] == "client"
        await say("list")
        (hold,) = (await said())["holds"]
        assert (hold["number"], hold["caught"]) == (1, 1)
        assert hold["pattern"] == "UPDATE_CONSUMER_OFFSET queueId=0"
        assert hold["kept"] == [held["details"]]
        for wrong in ("release 2", "hold NONE", "jump"):
            await say(wrong)
            assert "error" in await said()
        assert not call.done()
        await say("release 1")
        assert (await said())["kind"] == "frame.released"
        assert await said() == {"ended": "release", "hold": 1, "frames": 1}
        assert (await call).code == ResponseCode.SUCCESS
        await say("hold UPDATE_CONSUMER_OFFSET oneway")
        assert await said() == {"hold": 2, "pattern": "UPDATE_CONSUMER_OFFSET oneway"}
        await say("list")
        assert len((await said())["holds"]) == 2
        await client.invoke_oneway(ready["address"], commit(8))
        assert (await said())["kind"] == "frame.held"
        await say("drop 2")
        assert (await said())["kind"] == "frame.dropped"
        assert await said() == {"ended": "drop", "hold": 2, "frames": 1}
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), PATIENCE) == 0
        assert process.stderr is not None
        assert await process.stderr.read() == b""


async def test_the_command_ends_with_its_parent() -> None:
    async with AsyncExitStack() as exits:
        upstream = await Venue(None, exits).server({})
        arguments = ("--namesrv", upstream, "--exit-with-parent")
        process = await exits.enter_async_context(command(*arguments))
        assert process.stdin is not None
        assert process.stdout is not None
        await process.stdout.readline()
        process.stdin.close()
        assert await asyncio.wait_for(process.wait(), PATIENCE) == 0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--namesrv", "127.0.0.1:{closed}"), "no namesrv at 127.0.0.1:{closed}: Connection refused"),
        (("--namesrv", "nowhere"), "name server: 'nowhere' is not of the form host:port"),
        (
            ("--namesrv", "127.0.0.1:1", "--hold", "NONE"),
            "'NONE' in the pattern 'NONE' is not a request code",
        ),
        (("--namesrv", "{open}", "--port", "{taken}"), "cannot listen on 127.0.0.1:{taken}"),
        # 192.0.2.1 is an address that no machine has.
        (("--namesrv", "{open}", "--host", "192.0.2.1"), "'192.0.2.1' is not a loopback address"),
        (
            ("--namesrv", "{open}", "--host", "192.0.2.1", "--allow-open-access"),
            "cannot listen on 192.0.2.1",
        ),
    ],
)
async def test_an_error_is_one_line_and_exit_code_1(arguments: tuple[str, ...], text: str) -> None:
    async with AsyncExitStack() as exits:
        upstream = await Venue(None, exits).server({})
        # A bound port without a listener: no other process gets it, and connecting to it fails.
        taken = exits.enter_context(socket.socket())
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        if "{taken}" in arguments:
            taken.listen()
        names = {"closed": port, "taken": port, "open": upstream}
        words = [word.format(**names) for word in arguments]
        process = await exits.enter_async_context(command(*words))
        out, error = await asyncio.wait_for(process.communicate(), PATIENCE)
        assert process.returncode == 1
        assert out == b""
        assert text.format(**names) in error.decode()
        assert error.count(b"\n") == 1
