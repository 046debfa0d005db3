"""Both ends of real connections, and a peer that speaks bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, suppress

from rewindmq.protocol.command import FLAG_RESPONSE, RemotingCommand, SerializeType
from rewindmq.protocol.frame import FrameDecoder, encode_frame
from rewindmq.protocol.remoting.client import RemotingClient
from rewindmq.protocol.remoting.connection import Connection, Handler
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.protocol.remoting.server import RemotingServer
from rewindmq.protocol.remoting.state import CloseReason

OnClose = Callable[[Connection, CloseReason], None]


class RawPeer:
    """A peer on a plain stream: sends exactly the bytes that the test passes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._decoder = FrameDecoder()
        self._received: list[RemotingCommand] = []

    def send(self, *commands: RemotingCommand, serialize_type: SerializeType = SerializeType.MSGPACK) -> None:
        """Send all commands in one write."""
        self.writer.write(b"".join(encode_frame(command, serialize_type) for command in commands))

    async def receive(self) -> RemotingCommand:
        """The next command. EOFError at the end of the stream."""
        command = await self.receive_if_any()
        if command is None:
            raise EOFError
        return command

    async def receive_if_any(self) -> RemotingCommand | None:
        """The next command; None at the end of the stream."""
        while not self._received:
            data = await self.reader.read(1 << 20)
            if not data:
                return None
            self._received += self._decoder.feed(data)
        return self._received.pop(0)

    def answer(self, request: RemotingCommand, code: int = 0, body: bytes | None = None) -> None:
        response = RemotingCommand(code, body=body, opaque=request.opaque, flag=FLAG_RESPONSE)
        self.writer.write(encode_frame(response, request.serialize_type))

    async def close(self) -> None:
        self.writer.transport.abort()
        await asyncio.wait([asyncio.ensure_future(self.writer.wait_closed())])


class RemotingStage:
    """Makes servers, clients and raw peers, and closes them when the test is over."""

    def __init__(self, runtime: Runtime, exits: AsyncExitStack) -> None:
        self.runtime = runtime
        self._exits = exits

    async def server(
        self, handlers: Mapping[int, Handler], on_close: OnClose | None = None
    ) -> RemotingServer:
        server = RemotingServer(self.runtime, handlers, on_close=on_close)
        await server.start("127.0.0.1", 0)
        self._exits.push_async_callback(server.close, 0.2)
        return server

    def client(
        self,
        *,
        serialize_type: SerializeType | None = None,
        greeting: Callable[[], RemotingCommand] | None = None,
        on_close: OnClose | None = None,
        handlers: Mapping[int, Handler] | None = None,
    ) -> RemotingClient:
        client = RemotingClient(
            self.runtime, handlers or {}, serialize_type=serialize_type, greeting=greeting, on_close=on_close
        )
        self._exits.push_async_callback(client.close)
        return client

    def connection(self, transport: asyncio.Transport, handlers: Mapping[int, Handler]) -> Connection:
        """A server's connection over a transport of the test's own."""
        server = RemotingServer(self.runtime, handlers)
        connection = Connection(server, SerializeType.MSGPACK, accepted=True)
        connection.connection_made(transport)
        self._exits.callback(connection.connection_lost, None)
        return connection

    async def raw(self, server: RemotingServer) -> RawPeer:
        peer = RawPeer(*await asyncio.open_connection(server.host, server.port))
        self._exits.push_async_callback(peer.close)
        return peer

    async def raw_server(self, talk: Callable[[RawPeer], Awaitable[None]]) -> str:
        """The address of a server that calls ``talk`` for every connection, then drops it."""

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            peer = RawPeer(reader, writer)
            # Cancelled when the test is over first; the stream's own callback would complain about that.
            with suppress(asyncio.CancelledError):
                await talk(peer)
            writer.transport.abort()

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        self._exits.callback(server.close)
        host, port = server.sockets[0].getsockname()
        return f"{host}:{port}"

    @staticmethod
    async def eventually(condition: Callable[[], bool]) -> None:
        """Wait until ``condition`` is true, where there is no event to wait for; fail after a minute."""
        async with asyncio.timeout(60):
            while not condition():  # noqa: ASYNC110
                await asyncio.sleep(0.001)
