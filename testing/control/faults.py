"""Faults: the rules and links that programs made through the control port, by number."""

from __future__ import annotations

import asyncio
import itertools
from http import HTTPStatus
from typing import Any, Final, TypeVar

from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.testing.clusters.servers import Servers
from rewindmq.testing.control.bodies import LinkBody, RuleBody
from rewindmq.testing.control.http_request import HttpError
from rewindmq.testing.errors import KitError
from rewindmq.testing.waiting.waiter import Waiter
from rewindmq.testing.wire.fault import WireFault
from rewindmq.testing.wire.link_fault import LinkFault
from rewindmq.testing.wire.passed import Passed
from rewindmq.testing.wire.request_rule import RequestRule
from rewindmq.testing.wire.requests import Requests
from rewindmq.testing.wire.wire import Wire
from rewindmq.testing.wire.wire_control import WireControl

MAX_FAULTS: Final = 1_000
MAX_CLIENTS: Final = 100

FaultT = TypeVar("FaultT", bound=WireFault)


class Faults(WireControl):
    """The kit's faults for one cluster, which outlive the connection that made them.

    Attributes:
        changing: held while a fault is added, and while a test ends: from ``settle`` until the servers are
            put back. A fault that comes meanwhile belongs to the next test.
    """

    def __init__(self, servers: Servers, runtime: Runtime) -> None:
        self._servers = servers
        self._waiter = Waiter(runtime)
        self._wire = Wire(runtime, servers.namesrv_address)
        self._is_checked = True
        self._numbers = itertools.count(1)
        self._rules: dict[int, RequestRule] = {}
        self._links: dict[int, LinkFault] = {}
        self.changing: Final = asyncio.Lock()

    @property
    def wire(self) -> Wire:
        """The proxies."""
        assert self._wire is not None
        return self._wire

    @property
    def waiter(self) -> Waiter:
        """Waits of the cluster's time scale."""
        return self._waiter

    async def add_rule(self, body: RuleBody) -> dict[str, Any]:
        """Begin a rule; it is in force when this returns.

        Raises:
            KitError: a value is wrong, or there are too many faults.
        """
        async with self.changing:
            return await self._add_rule(body)

    async def add_link(self, body: LinkBody) -> dict[str, Any]:
        """Cut or slow a link; errors as in ``add_rule``."""
        async with self.changing:
            return await self._add_link(body)

    async def add_client(self, name: str) -> dict[str, str]:
        """Return the name-server address for one client."""
        if name not in self.wire.clients and len(self.wire.clients) >= MAX_CLIENTS:
            raise KitError(f"{MAX_CLIENTS} clients have addresses: use one of them again")
        return {"name": name, "namesrv": await self.address_for(name)}

    def rule(self, text: str) -> RequestRule:
        """Return a rule by the number in a path.

        Raises:
            HttpError: there is none.
        """
        return _numbered(self._rules, text, "rule")

    def remove_rule(self, text: str) -> dict[str, Any]:
        """End a rule and forget it; what it holds is passed on, and nobody asks whether it was met."""
        self.rule(text)
        rule = self._rules.pop(int(text))
        return self._forget(rule)

    def remove_link(self, text: str) -> dict[str, Any]:
        """Heal a link and forget the fault."""
        _numbered(self._links, text, "link")
        return self._forget(self._links.pop(int(text)))

    def rules(self) -> list[dict[str, Any]]:
        """Return all rules, the oldest first."""
        return [self.show_rule(number) for number in self._rules]

    def links(self) -> list[dict[str, Any]]:
        """Return all links that were cut or slowed, the oldest first."""
        return [self.show_link(number) for number in self._links]

    def show_rule(self, number: int) -> dict[str, Any]:
        """Return a rule as a JSON object."""
        rule = self._rules[number]
        return {
            "rule": number,
            "text": str(rule),
            "in_force": rule.is_in_force,
            "count": rule.count,
            "held": [frame.details for frame in rule.held],
        }

    def show_link(self, number: int) -> dict[str, Any]:
        """Return a cut or slow link as a JSON object."""
        link = self._links[number]
        return {"link": number, "text": str(link), "in_force": link.is_in_force}

    def settle(self) -> dict[str, list[str]]:
        """End and forget all faults, as the kit does at a test's end.

        Returns:
            ``complaints`` says why the test fails, such as a rule that nothing met; ``holding`` names the
            rules that held frames.
        """
        holding = [str(fault) for fault in self.wire.settle()]
        complaints = self.wire.complaints()
        self.wire.faults.clear()
        self.wire.passed = Passed()
        self._rules.clear()
        self._links.clear()
        return {"complaints": complaints, "holding": holding}

    async def _add_rule(self, body: RuleBody) -> dict[str, Any]:
        self._require_room()
        requests = self.on(
            body.on,
            group=body.group,
            topic=body.topic,
            queue=body.queue,
            client=body.client,
            server=body.server,
            direction=body.direction,
            times=body.times,
        )
        rule = _rule(requests, body)
        number = next(self._numbers)
        self._rules[number] = await (rule.optional() if body.optional else rule)
        return self.show_rule(number)

    async def _add_link(self, body: LinkBody) -> dict[str, Any]:
        self._require_room()
        if body.do == "partition":
            if body.latency or body.bytes_per_second is not None:
                raise KitError("latency and bytes_per_second belong to slow_link, not to partition")
            link = self.partition(body.server, client=body.client)
        else:
            link = self.slow_link(
                body.server,
                latency=body.latency,
                bytes_per_second=body.bytes_per_second,
                client=body.client,
            )
        number = next(self._numbers)
        self._links[number] = await link
        return self.show_link(number)

    def _forget(self, fault: WireFault) -> dict[str, Any]:
        fault.settle()
        self.wire.faults.remove(fault)
        return {"removed": str(fault)}

    def _require_room(self) -> None:
        if len(self._rules) + len(self._links) >= MAX_FAULTS:
            raise KitError(f"there are {MAX_FAULTS} rules and links: remove some, or POST /v1/settle")


def _rule(requests: Requests, body: RuleBody) -> RequestRule:
    if body.seconds is not None and body.do != "delay":
        raise KitError(f"seconds belongs to delay, not to {body.do}")
    if body.code is not None and body.do != "fail":
        raise KitError(f"code belongs to fail, not to {body.do}")
    match body.do:
        case "hold":
            return requests.hold()
        case "drop":
            return requests.drop()
        case "duplicate":
            return requests.duplicate()
        case "delay":
            if body.seconds is None:
                raise KitError('delay needs "seconds", of the cluster\'s time')
            return requests.delay(body.seconds)
        case "fail":
            if body.code is None:
                raise KitError('fail needs "code", such as "SYSTEM_BUSY"')
            return requests.fail(body.code, body.remark)


def _numbered(faults: dict[int, FaultT], text: str, what: str) -> FaultT:
    fault = faults.get(int(text)) if text.isascii() and text.isdigit() and len(text) < 10 else None
    if fault is None:
        known = ", ".join(map(str, faults)) or "none"
        raise HttpError(HTTPStatus.NOT_FOUND, f"there is no {what} {text!r}; {what}s: {known}")
    return fault
