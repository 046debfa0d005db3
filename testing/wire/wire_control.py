"""WireControl: the part of ``Rmq`` that disturbs requests and links."""

from __future__ import annotations

from rewindmq.race.proxy.outlet import LinkCondition
from rewindmq.testing.clusters.servers import Servers
from rewindmq.testing.errors import KitError, NotSeenError
from rewindmq.testing.waiting.waiter import Waiter
from rewindmq.testing.wire.link_fault import LinkFault
from rewindmq.testing.wire.requests import Direction, Requests, RequestSelection, select_requests
from rewindmq.testing.wire.wire import APPLICATION, Wire

_REMEDY = "mark the test with @pytest.mark.rewindmq(wire=True), or pass wire=True to rewindmq.testing.rmq"


class WireControl:
    """Faults between the test's clients and the servers; they need ``wire=True`` (docs/testkit/faults.md).

    The kit's own requests (sends of topics, resets, waits) go to the servers directly.
    """

    _servers: Servers
    _waiter: Waiter
    _wire: Wire | None
    # True if the faults were checked, or need not be.
    _is_checked: bool

    def on(
        self,
        request: str | int,
        *,
        group: object = None,
        topic: object = None,
        queue: int | None = None,
        client: str | None = None,
        server: str | None = None,
        direction: Direction = "request",
        times: int | None = 1,
    ) -> Requests:
        """Return requests, to hold, delay, drop, fail or duplicate them.

        Args:
            request: RocketMQ's name or number, as in "PULL_MESSAGE".
            group: a group of the kit, or its full name: of the request's header, so not of HEART_BEAT.
            topic: a topic of the kit, or its full name.
            queue: number of the queue; needs a topic.
            client: "billing" for ``rmq.push("billing", …)``, "billing/2" for its second consumer, the group's
                name of a producer, or "application".
            server: "broker-a", "namesrv".
            direction: "response" means the responses to these requests.
            times: how many frames meet the rule; None: all.

        Raises:
            KitError: an argument is wrong, or the test has no ``wire=True``.
        """
        wire = self._require_wire("rmq.on")
        if server is not None:
            self._require_server(server)
        selection = RequestSelection(
            group=None if group is None else str(group),
            topic=None if topic is None else str(topic),
            queue=queue,
            client=client,
            server=server,
            direction=direction,
            times=times,
        )
        return select_requests(wire, request, selection, self._waiter.default_timeout)

    def partition(self, server: str, *, client: str | None = None) -> LinkFault:
        """Cut the link between a server and the test's clients: nothing arrives, and connections stay open.

        What was sent meanwhile arrives when the link is healed, as TCP repeats it.

        Args:
            server: "broker-a", "broker-a-s1", "namesrv".
            client: as in ``on``; None cuts off all clients.

        Raises:
            KitError: there is no such server, or the test has no ``wire=True``.
        """
        return self._link_fault("rmq.partition", server, client, LinkCondition(is_cut=True), "")

    def slow_link(
        self,
        server: str,
        *,
        latency: float = 0.0,
        bytes_per_second: float | None = None,
        client: str | None = None,
    ) -> LinkFault:
        """Slow the link between a server and the test's clients, in both directions.

        Args:
            latency: seconds of the cluster's time that each frame takes.
            bytes_per_second: 1 or more, of each connection and direction, in seconds of the cluster's time.

        Raises:
            KitError: as ``partition``, or a value is out of range.
        """
        if latency < 0 or (bytes_per_second is not None and not bytes_per_second >= 1):
            raise KitError("latency must be 0 or more, and bytes_per_second 1 or more")
        if not latency and bytes_per_second is None:
            raise KitError("a slow link needs latency=, bytes_per_second=, or both")
        words = f", latency={latency:g}" if latency else ""
        words += f", bytes_per_second={bytes_per_second:g}" if bytes_per_second is not None else ""
        condition = LinkCondition(latency=latency, bytes_per_second=bytes_per_second)
        return self._link_fault("rmq.slow_link", server, client, condition, words)

    def heal(self, server: str | None = None) -> None:
        """End all partitions and slow links, or those of one server.

        Raises:
            KitError: there are none.
        """
        wire = self._require_wire("rmq.heal")
        faults = [
            fault
            for fault in wire.faults
            if isinstance(fault, LinkFault) and fault.is_in_force and server in (None, fault.server)
        ]
        if not faults:
            raise KitError(f"no link {f'of {server} ' if server else ''}is cut or slow")
        for fault in faults:
            fault.heal()

    async def address_for(self, client: str) -> str:
        """Return a name-server address for one client of the application, which rules then call ``client``.

        Clients that use ``rmq.namesrv_address`` are all called "application".
        """
        return await self._require_wire("rmq.address_for").entrance(client)

    def check_faults(self) -> None:
        """Require that each rule has met a request; the kit calls it at the end of a test that passed.

        Raises:
            NotSeenError: the text has the requests that did pass.
        """
        if self._wire is None or self._is_checked:
            return
        complaints = self._wire.complaints()
        if complaints:
            raise NotSeenError("\n".join(complaints))

    def excuse_faults(self) -> None:
        """Do not check the faults at the end: they were checked, or the test has failed already."""
        self._is_checked = True

    def _link_fault(
        self, call: str, server: str, client: str | None, condition: LinkCondition, words: str
    ) -> LinkFault:
        wire = self._require_wire(call)
        self._require_server(server)
        words += f", client={client!r}" if client is not None else ""
        return LinkFault(wire, f"{call}({server!r}{words})", server, client, condition)

    def _require_server(self, name: str) -> None:
        if name not in self._servers.processes:
            raise KitError(f"there is no server {name!r}; servers: {', '.join(self._servers.processes)}")

    def _require_wire(self, call: str) -> Wire:
        self._servers.require_local(call)
        if self._wire is None:
            raise KitError(f"{call} needs proxies between clients and servers: {_REMEDY}")
        return self._wire

    async def _open_wire(self) -> str:
        """Open the entrance of the application; return its address."""
        assert self._wire is not None
        return await self._wire.entrance(APPLICATION)
