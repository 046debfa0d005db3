"""FrameProxy: between one client and a whole cluster (RocketMQ or RewindMQ), in any serialization type."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.remoting.address import format_address, parse_address
from rewindmq.protocol.remoting.runtime import Listener, Runtime
from rewindmq.race.errors import RaceError
from rewindmq.race.history import Lab
from rewindmq.race.proxy.frame import Asked, Frame
from rewindmq.race.proxy.frame_hold import FrameHold
from rewindmq.race.proxy.link import Link, dial
from rewindmq.race.proxy.pattern import FramePattern
from rewindmq.race.proxy.route_answer import ROUTE_CODES, broker_addresses, with_addresses

NAMESRV: Final = "namesrv"
# Whose event it is when the proxy does something by itself.
_LAB: Final = "lab"

# Called as record(kind, process, details).
Recorder = Callable[[Lab, str, dict[str, Any]], None]


class FrameProxy:
    """Stands in for the name server of one client, and for every broker that one tells of.

    The client is given ``address`` instead of the name server's. Answers to 105 and 106 name the proxy where
    they named brokers; everything else passes byte for byte, also what is no frame. Old clients that talk to
    a broker's VIP port (port - 2) must be told not to.

    Args:
        upstream: the name server, ``host:port``.
        record: told of every frame: ``FRAME_SENT`` when the proxy has it, ``FRAME_ARRIVED`` when it passes
            it on, ``FRAME_HELD``, ``FRAME_RELEASED`` and ``FRAME_DROPPED`` (with ``reason``); and by a
            ``NOTE`` of every server that could not be reached.
        client_name: the client's process, as in ``consumer-A``.
        host: the interface to listen at; routes name it, so the client has to be able to reach it.
        port: of the stand-in for the name server; 0 takes any free one.
    """

    def __init__(
        self,
        runtime: Runtime,
        upstream: str,
        record: Recorder,
        *,
        client_name: str,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self.runtime = runtime
        self.client_name = client_name
        self._record = record
        self._host = host
        self._port = port
        self._frames = 0
        self._holds: list[FrameHold] = []
        self._links: dict[Link, None] = {}
        self._all_gone: asyncio.Event | None = None
        self._namesrv = _Front(self, NAMESRV, upstream)
        self._fronts: dict[str, _Front] = {}
        self._opening: dict[str, asyncio.Task[None]] = {}

    @property
    def address(self) -> str:
        """What to give the client as the name server's address; after ``start``."""
        return self._namesrv.address

    async def start(self) -> None:
        """Listen, once it is certain that there is a name server.

        Raises:
            RaceError: the address is invalid, or no server listens there.
            OSError: the port cannot be bound.
        """
        try:
            parse_address(self._namesrv.upstream)
        except ValueError as error:
            raise RaceError(f"name server: {error}") from None
        await dial(self.runtime, _Knock(), self._namesrv.name, self._namesrv.upstream)
        await self._namesrv.open(self._host, self._port)

    async def close(self) -> None:
        """End every connection; held frames are lost, and whoever waits for one is told. May be repeated."""
        for hold in tuple(self._holds):
            hold.drop()
        for front in (self._namesrv, *self._fronts.values()):
            front.close()
        for task in self._opening.values():
            task.cancel()
        self._all_gone = asyncio.Event()
        for link in tuple(self._links):
            link.abort()
        if self._links:
            await self._all_gone.wait()

    def hold(self, pattern: FramePattern) -> FrameHold:
        """Catch frames from now on. A frame that several holds match goes to the oldest."""
        hold = FrameHold(pattern, self.runtime.timers, self._holds.remove)
        self._holds.append(hold)
        return hold

    # What lanes ask (``Traffic``).

    def next_id(self) -> str:
        self._frames += 1
        return f"{self.client_name}:{self._frames}"

    def record(self, kind: Lab, frame: Frame, **more: object) -> None:
        process = {Lab.FRAME_SENT: frame.source, Lab.FRAME_ARRIVED: frame.target}.get(kind, _LAB)
        self._record(kind, process, {**frame.details, **more})

    def catch(self, frame: Frame) -> FrameHold | None:
        return next((hold for hold in tuple(self._holds) if hold.takes(frame)), None)

    def rewrite(self, asked: Asked, response: RemotingCommand) -> Coroutine[Any, Any, bytes] | None:
        if asked.code not in ROUTE_CODES or response.code != ResponseCode.SUCCESS:
            return None
        names = broker_addresses(asked.code, response)
        return self._open_and_rewrite(names, response) if names else None

    # What fronts tell.

    def link_opened(self, link: Link) -> None:
        self._links[link] = None

    def link_failed(self, reason: str) -> None:
        self._record(Lab.NOTE, _LAB, {"text": reason})

    def link_closed(self, link: Link) -> None:
        del self._links[link]
        if not self._links and self._all_gone is not None:
            self._all_gone.set()

    async def _open_and_rewrite(self, names: Mapping[str, str], response: RemotingCommand) -> bytes:
        for address, name in names.items():
            if address not in self._fronts:
                await self._open_front(address, name)
        fronts = {address: self._fronts[address].address for address in names if address in self._fronts}
        return with_addresses(response, fronts)

    async def _open_front(self, address: str, name: str) -> None:
        """Two answers may tell of the same broker at the same time."""
        task = self._opening.get(address)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._listen_for(address, name))
            self._opening[address] = task
        await asyncio.shield(task)

    async def _listen_for(self, address: str, name: str) -> None:
        try:
            parse_address(address)
            front = _Front(self, name, address)
            await front.open(self._host, 0)
        except (ValueError, OSError) as error:
            # The client is left with the address itself: it goes there unseen.
            self.link_failed(f"cannot stand in for {name} at {address}: {error}")
        else:
            self._fronts[address] = front
        finally:
            del self._opening[address]


class _Front:
    """Where one server seems to be."""

    def __init__(self, proxy: FrameProxy, name: str, upstream: str) -> None:
        self._proxy = proxy
        self.name = name
        self.upstream = upstream
        self.runtime = proxy.runtime
        self.client_name = proxy.client_name
        self._listener: Listener | None = None
        self.address = ""

    async def open(self, host: str, port: int) -> None:
        try:
            self._listener = await self.runtime.network.listen(self._accept, host, port)
        except OSError as error:
            raise OSError(error.errno, f"cannot listen on {host}:{port}: {error.strerror or error}") from None
        self.address = format_address((self._listener.host, self._listener.port))

    def close(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()

    def link_failed(self, reason: str) -> None:
        self._proxy.link_failed(reason)

    def link_closed(self, link: Link) -> None:
        self._proxy.link_closed(link)

    def _accept(self) -> asyncio.Protocol:
        link = Link(self, self._proxy)
        self._proxy.link_opened(link)
        return link.client


class _Knock(asyncio.Protocol):
    """Connects to check that a server listens, and closes the connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()
