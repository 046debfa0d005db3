"""``--serialize-type``: every request of a command has the chosen serialization type."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest

from rewindmq.__main__ import build_parser, main
from rewindmq.client.cli.serialize_type_option import chosen_serialize_type
from rewindmq.protocol.command import SerializeType
from rewindmq.protocol.frame import FrameDecoder

COMMANDS = {
    "produce": ("produce", "-t", "T"),
    "consume": ("consume", "-t", "T", "-g", "G"),
    "admin": ("admin", "topicRoute", "-t", "T"),
}
# For each connection with requests, the serialization types of its first requests.
SeenTypes = list[set[SerializeType]]
StartServer = Callable[[], Awaitable[tuple[str, SeenTypes]]]


@pytest.fixture
async def start_server() -> AsyncIterator[StartServer]:
    """Starts name servers that record the types of the first requests of each connection, and close it.

    The first requests may be several: a command asks for more than one route.
    """
    async with AsyncExitStack() as exits:

        async def start() -> tuple[str, SeenTypes]:
            seen: SeenTypes = []

            async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                decoder = FrameDecoder()
                while data := await reader.read(65536):
                    requests = list(decoder.feed(data))
                    if requests:
                        seen.append({request.serialize_type for request in requests})
                        break
                writer.close()

            server = await asyncio.start_server(serve, "127.0.0.1", 0)
            exits.callback(server.close)
            return f"127.0.0.1:{server.sockets[0].getsockname()[1]}", seen

        yield start


async def run(command: str, address: str, *options: str) -> tuple[int | None, str]:
    """Run a command, and return its exit code and standard error."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "rewindmq", *COMMANDS[command], "-n", address, *options),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, errors = await asyncio.wait_for(process.communicate(), 60)
    return process.returncode, errors.decode()


@pytest.mark.parametrize(("command", "serialize_type"), list(zip(COMMANDS, SerializeType, strict=True)))
async def test_only_the_chosen_serialization_type_is_sent(
    command: str, serialize_type: SerializeType, start_server: StartServer
) -> None:
    address, seen = await start_server()
    code, errors = await run(command, address, "--serialize-type", serialize_type.name.lower())
    assert code == 1
    assert errors.count("\n") == 1
    assert seen
    assert set().union(*seen) == {serialize_type}


@pytest.mark.parametrize("command", COMMANDS)
async def test_by_default_msgpack_is_sent_first_then_json(command: str, start_server: StartServer) -> None:
    address, seen = await start_server()
    code, _ = await run(command, address)
    assert code == 1
    assert seen[:2] == [{SerializeType.MSGPACK}, {SerializeType.JSON}]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_accepts_every_serialization_type_and_auto(command: str) -> None:
    name, *options = COMMANDS[command]

    def chosen(*serialize_type: str) -> SerializeType | None:
        return chosen_serialize_type(build_parser(name).parse_args([*options, *serialize_type]))

    assert [
        chosen("--serialize-type", serialize_type.name.lower()) for serialize_type in SerializeType
    ] == list(SerializeType)
    assert chosen("--serialize-type", "auto") is chosen() is None


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_serialization_type_is_refused(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as done:
        main([*COMMANDS[command], "-n", "127.0.0.1:1", "--serialize-type", "avro"])
    assert done.value.code == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert "argument --serialize-type: invalid choice: 'avro'" in last


@pytest.mark.parametrize("command", COMMANDS)
def test_the_old_name_wire_is_refused_with_the_new_name(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as done:
        main([*COMMANDS[command], "-n", "127.0.0.1:1", "--wire", "json"])
    assert done.value.code == 2
    assert "--wire is now called --serialize-type" in capsys.readouterr().err.splitlines()[-1]
