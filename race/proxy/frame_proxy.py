"""FrameProxy: proxy between one client and a whole cluster (RocketMQ or RewindMQ)."""

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
from rewindmq.race.proxy.action import Action, Hold
from rewindmq.race.proxy.frame import Frame, PendingRequest
from rewindmq.race.proxy.frame_rule import FrameRule, FrameRules
from rewindmq.race.proxy.link import Link, dial
from rewindmq.race.proxy.outlet import WHOLE, LinkCondition
from rewindmq.race.proxy.pattern import FramePattern
from rewindmq.race.proxy.route_answer import ROUTE_CODES, broker_addresses, with_addresses

NAMESRV: Final = "namesrv"
# Process of the events that the proxy itself causes.
_LAB: Final = "lab"

# Called as record(kind, process, details).
Recorder = Callable[[Lab, str, dict[str, Any]], None]


class FrameProxy:
    """Stands in for one client's name server, and for every broker in that name server's responses.

    Configure the client with ``address`` instead of the name server's address. In responses to
    GET_ROUTEINFO_BY_TOPIC (105) and GET_BROKER_CLUSTER_INFO (106), the proxy replaces the brokers' addresses
    by its own. All other bytes pass unchanged, in any serialization type, also if they are no frames. Disable
    the VIP channel (the broker's port - 2) of old clients, because it bypasses the proxy.

    Args:
        upstream: the name server, ``host:port``.
        record: called for every frame: with ``FRAME_SENT`` when the proxy receives it, ``FRAME_ARRIVED`` when
            it passes it on, ``FRAME_HELD``, ``FRAME_RELEASED`` and ``FRAME_DROPPED`` (with ``reason``). It is
            called with ``NOTE`` if a server cannot be reached.
        client_name: name of the client's process, as in ``consumer-A``.
        host: interface to listen on; the client must reach it, because routes name it.
        port: port of the stand-in for the name server; 0 takes any free one.
        rules: rules that this proxy shares with others, which then close together; None makes own ones.
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
        rules: FrameRules | None = None,
    ) -> None:
        self.runtime = runtime
        self.client_name = client_name
        self._record = record
        self._host = host
        self._port = port
        self._frames = 0
        self._rules = FrameRules(runtime.timers) if rules is None else rules
        self._links: dict[Link, None] = {}
        # By name of the server.
        self._conditions: dict[str, LinkCondition] = {}
        self._all_closed: asyncio.Event | None = None
        self._namesrv = _ServerProxy(self, NAMESRV, upstream)
        self._server_proxies: dict[str, _ServerProxy] = {}
        self._opening: dict[str, asyncio.Task[None]] = {}

    @property
    def address(self) -> str:
        """Address to configure as the client's name server; set by ``start``."""
        return self._namesrv.address

    async def start(self) -> None:
        """Check that the name server can be reached, and listen.

        Raises:
            RaceError: the address is invalid, or no server listens there.
            OSError: the port cannot be bound.
        """
        try:
            parse_address(self._namesrv.upstream)
        except ValueError as error:
            raise RaceError(f"name server: {error}") from None
        await dial(self.runtime, _ConnectProbe(), self._namesrv.name, self._namesrv.upstream)
        await self.listen()

    async def listen(self) -> None:
        """Listen, whether or not the name server can be reached now.

        Raises:
            OSError: the port cannot be bound.
        """
        await self._namesrv.open(self._host, self._port)

    async def close(self) -> None:
        """Close every connection and drop held frames; ``FrameRule.wait`` then raises. May be repeated."""
        self._rules.drop()
        for server_proxy in (self._namesrv, *self._server_proxies.values()):
            server_proxy.close()
        for task in self._opening.values():
            task.cancel()
        self._all_closed = asyncio.Event()
        for link in tuple(self._links):
            link.abort()
        if self._links:
            await self._all_closed.wait()

    def hold(self, pattern: FramePattern) -> FrameRule:
        """Hold frames from now on; see ``add_rule``."""
        return self.add_rule(pattern, Hold())

    def add_rule(self, pattern: FramePattern, action: Action) -> FrameRule:
        """Catch frames from now on. The oldest rule that matches a frame catches it."""
        return self._rules.add(pattern, action)

    def set_condition(self, server: str, condition: LinkCondition) -> None:
        """Change the network between the client and a server, for connections of now and of later.

        Args:
            server: a name, as in ``namesrv`` and ``broker-a``.
        """
        self._conditions[server] = condition
        for link in tuple(self._links):
            if link.server_name == server:
                link.set_condition(condition)

    # Called by lanes (``FrameHooks``).

    def next_id(self) -> str:
        self._frames += 1
        return f"{self.client_name}:{self._frames}"

    def record(self, kind: Lab, frame: Frame, **more: object) -> None:
        process = {Lab.FRAME_SENT: frame.source, Lab.FRAME_ARRIVED: frame.target}.get(kind, _LAB)
        self._record(kind, process, {**frame.details, **more})

    def catch(self, frame: Frame) -> FrameRule | None:
        return self._rules.catch(frame)

    def rewrite(
        self, request: PendingRequest, response: RemotingCommand
    ) -> Coroutine[Any, Any, bytes] | None:
        if request.code not in ROUTE_CODES or response.code != ResponseCode.SUCCESS:
            return None
        names = broker_addresses(request.code, response)
        return self._open_and_rewrite(names, response) if names else None

    # Called by links and their owners.

    def link_opened(self, link: Link) -> None:
        self._links[link] = None
        link.set_condition(self._conditions.get(link.server_name, WHOLE))

    def link_failed(self, reason: str) -> None:
        self._record(Lab.NOTE, _LAB, {"text": reason})

    def link_closed(self, link: Link) -> None:
        del self._links[link]
        if not self._links and self._all_closed is not None:
            self._all_closed.set()

    async def _open_and_rewrite(self, names: Mapping[str, str], response: RemotingCommand) -> bytes:
        for address, name in names.items():
            if address not in self._server_proxies:
                await self._open_server_proxy(address, name)
        addresses = {
            address: self._server_proxies[address].address
            for address in names
            if address in self._server_proxies
        }
        return with_addresses(response, addresses)

    async def _open_server_proxy(self, address: str, name: str) -> None:
        """Listen for a broker once, even if two responses name it at the same time."""
        task = self._opening.get(address)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._listen_for(address, name))
            self._opening[address] = task
        await asyncio.shield(task)

    async def _listen_for(self, address: str, name: str) -> None:
        try:
            parse_address(address)
            server_proxy = _ServerProxy(self, name, address)
            await server_proxy.open(self._host, 0)
        except (ValueError, OSError) as error:
            # The response keeps the broker's own address, so the client bypasses the proxy there.
            self.link_failed(f"cannot stand in for {name} at {address}: {error}")
        else:
            self._server_proxies[address] = server_proxy
        finally:
            del self._opening[address]


class _ServerProxy:
    """Listener that stands in for one server."""

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


class _ConnectProbe(asyncio.Protocol):
    """Connects to check that a server listens, and closes the connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()
