"""FaultPaths: rules, links, and the clients that they see."""

from __future__ import annotations

from collections.abc import Callable

from rewindmq.testing.control.bodies import (
    ClientBody,
    HealBody,
    LinkBody,
    MetBody,
    NoBody,
    RuleBody,
    decode,
)
from rewindmq.testing.control.faults import Faults
from rewindmq.testing.control.http_request import HttpRequest
from rewindmq.testing.control.paths import Handlers, action_of


def is_wait(request: HttpRequest) -> bool:
    """Return True for the request that waits until a rule is met, up to ``MAX_WAIT_SECONDS``."""
    return request.path[1:2] == ("rules",) and request.path[3:] == ("met",)


class FaultPaths:
    """Answers requests about the faults of the wire."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults

    @property
    def handlers(self) -> Handlers:
        """The paths."""
        return {
            ("GET", "clients"): self._list_clients,
            ("POST", "clients"): self._add_client,
            ("GET", "rules"): self._list_rules,
            ("POST", "rules"): self._add_rule,
            ("GET", "rules/*"): self._show_rule,
            ("DELETE", "rules/*"): self._remove_rule,
            ("POST", "rules/*/*"): self._change_rule,
            ("GET", "links"): self._list_links,
            ("POST", "links"): self._add_link,
            ("DELETE", "links/*"): self._remove_link,
            ("POST", "heal"): self._heal,
        }

    async def _list_clients(self, values: tuple[str, ...], body: bytes) -> object:
        names = self._faults.wire.clients
        return {"clients": [await self._faults.add_client(name) for name in names]}

    async def _add_client(self, values: tuple[str, ...], body: bytes) -> object:
        return await self._faults.add_client(decode(body, ClientBody).name)

    async def _list_rules(self, values: tuple[str, ...], body: bytes) -> object:
        return {"rules": self._faults.rules()}

    async def _add_rule(self, values: tuple[str, ...], body: bytes) -> object:
        return await self._faults.add_rule(decode(body, RuleBody))

    async def _show_rule(self, values: tuple[str, ...], body: bytes) -> object:
        self._faults.rule(values[0])
        return self._faults.show_rule(int(values[0]))

    async def _remove_rule(self, values: tuple[str, ...], body: bytes) -> object:
        return self._faults.remove_rule(values[0])

    async def _change_rule(self, values: tuple[str, ...], body: bytes) -> object:
        number, word = values
        rule = self._faults.rule(number)
        actions: dict[str, Callable[[], None] | None] = {
            "met": None,
            "release": rule.release,
            "drop_held": rule.drop_held,
            "stop": rule.stop,
        }
        action = action_of(actions, word, "a rule")
        if action is None:
            met = decode(body, MetBody)
            return (await rule.met(met.timeout, count=met.count)).details
        decode(body, NoBody)
        action()
        return self._faults.show_rule(int(number))

    async def _list_links(self, values: tuple[str, ...], body: bytes) -> object:
        return {"links": self._faults.links()}

    async def _add_link(self, values: tuple[str, ...], body: bytes) -> object:
        return await self._faults.add_link(decode(body, LinkBody))

    async def _remove_link(self, values: tuple[str, ...], body: bytes) -> object:
        return self._faults.remove_link(values[0])

    async def _heal(self, values: tuple[str, ...], body: bytes) -> object:
        self._faults.heal(decode(body, HealBody).server)
        return {"links": self._faults.links()}
