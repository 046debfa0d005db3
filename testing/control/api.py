"""Api: the paths of the control port."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, Final

import rewindmq
from rewindmq.cluster.errors import ClusterError
from rewindmq.cluster.local_cluster import LocalCluster
from rewindmq.cluster.up.members import Members
from rewindmq.cluster.up.messages import Action, Member, State
from rewindmq.cluster.up.topics import create_topics
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.names import is_system_topic, topic_fault
from rewindmq.testing.control.bodies import (
    ClientBody,
    HealBody,
    LinkBody,
    MetBody,
    NoBody,
    RuleBody,
    SnapshotBody,
    TopicBody,
    decode,
)
from rewindmq.testing.control.faults import Faults
from rewindmq.testing.control.http_request import HttpError, HttpRequest
from rewindmq.testing.errors import KitError, NotSeenError

_VERSION: Final = "v1"
_log = logging.getLogger(__name__)

# Called with the values of a path's placeholders, and the body.
Handler = Callable[[tuple[str, ...], bytes], Awaitable[object]]


class Api:
    """Answers the requests of the control port.

    Args:
        wire_address: name-server address of the clients that rules call "application".
    """

    def __init__(self, cluster: LocalCluster, members: Members, faults: Faults, wire_address: str) -> None:
        self._cluster = cluster
        self._members = members
        self._faults = faults
        self._wire_address = wire_address
        self._handlers: Final[dict[tuple[str, str], Handler]] = {
            ("GET", "health"): self._health,
            ("GET", "cluster"): self._show_cluster,
            ("GET", "members"): self._list_members,
            ("POST", "members/*/*"): self._change_member,
            ("POST", "topics"): self._create_topic,
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
            ("GET", "snapshots"): self._list_snapshots,
            ("POST", "snapshots"): self._take_snapshot,
            ("POST", "snapshots/*/restore"): self._restore_snapshot,
            ("POST", "settle"): self._settle,
        }

    async def answer(self, request: HttpRequest) -> object:
        """Do what a request asks for, and return what is sent as JSON.

        Raises:
            HttpError: it was refused or has failed; the text is one that the sender can act on.
        """
        handler, values = self._find(request)
        try:
            return await handler(values, request.body)
        except HttpError:
            raise
        except NotSeenError as error:
            raise HttpError(HTTPStatus.GATEWAY_TIMEOUT, str(error)) from None
        except KitError as error:
            raise HttpError(HTTPStatus.BAD_REQUEST, str(error)) from None
        except ClusterError as error:
            raise HttpError(HTTPStatus.CONFLICT, str(error)) from None
        except RewindMQError as error:
            raise HttpError(HTTPStatus.BAD_GATEWAY, f"the cluster refused: {error}") from None
        except Exception as error:
            _log.exception("%s /%s failed", request.method, "/".join(request.path))
            text = f"{type(error).__name__}: {error}; see what rewindmq up prints"
            raise HttpError(HTTPStatus.INTERNAL_SERVER_ERROR, text) from None

    def _find(self, request: HttpRequest) -> tuple[Handler, tuple[str, ...]]:
        methods = []
        if request.path[:1] == (_VERSION,):
            for (method, pattern), handler in self._handlers.items():
                values = _values(pattern, request.path[1:])
                if values is not None and method == request.method:
                    return handler, values
                if values is not None:
                    methods.append(method)
        path = "/" + "/".join(request.path)
        if methods:
            raise HttpError(HTTPStatus.METHOD_NOT_ALLOWED, f"send {' or '.join(methods)} to {path}")
        known = ", ".join(dict.fromkeys(f"/{_VERSION}/{pattern}" for _, pattern in self._handlers))
        raise HttpError(HTTPStatus.NOT_FOUND, f"there is no path {path}; paths: {known}")

    # The cluster and its members.

    async def _health(self, values: tuple[str, ...], body: bytes) -> object:
        states = {member.name: member.state for member in self._members.list()}
        return {"healthy": set(states.values()) == {State.RUNNING}, "members": states}

    async def _show_cluster(self, values: tuple[str, ...], body: bytes) -> object:
        options = self._cluster.client_options
        return {
            "version": rewindmq.__version__,
            "pid": os.getpid(),
            "directory": str(self._cluster.directory),
            "namesrv": self._cluster.namesrv_address,
            "wire": self._wire_address,
            "profile": options["profile"],
            "time_scale": options["time_scale"],
        }

    async def _list_members(self, values: tuple[str, ...], body: bytes) -> object:
        return {"members": self._members.list()}

    async def _change_member(self, values: tuple[str, ...], body: bytes) -> object:
        decode(body, NoBody)
        name, word = values
        known = [member.name for member in self._members.list()]
        if name not in known:
            raise HttpError(HTTPStatus.NOT_FOUND, f"there is no member {name!r}; members: {', '.join(known)}")
        actions = [action.value for action in Action if action is not Action.LIST]
        if word not in actions:
            raise HttpError(
                HTTPStatus.NOT_FOUND, f"{word!r} is no action on a member; actions: {', '.join(actions)}"
            )
        return await self._do(Action(word), name)

    async def _do(self, action: Action, name: str) -> Member:
        member = await self._members.do(action, name)
        if action is Action.RESTART:
            await self._registered()
        return member

    async def _registered(self) -> None:
        """Wait until the name server knows each broker that runs."""
        wanted = {name for name, broker in self._cluster.brokers.items() if broker.is_running}
        if not wanted or not self._cluster.namesrv.is_running or self._cluster.namesrv.is_paused:
            return
        async with self._cluster.admin() as admin:

            async def condition() -> str | None:
                missing = wanted - (await admin.examine_broker_cluster_info()).broker_addr_table.keys()
                return f"not registered: {', '.join(sorted(missing))}" if missing else None

            await self._faults.waiter.until(condition, "the brokers are registered")

    async def _create_topic(self, values: tuple[str, ...], body: bytes) -> object:
        topic = decode(body, TopicBody)
        fault = topic_fault(topic.name)
        if fault is not None:
            raise KitError(f"{topic.name!r} cannot be a topic: {fault}")
        if is_system_topic(topic.name):
            raise KitError(f"{topic.name} is a topic of the brokers themselves: choose another name")
        limit = self._faults.waiter.default_timeout
        try:
            async with asyncio.timeout(limit):
                await create_topics(self._cluster, [(topic.name, topic.queues)])
        except TimeoutError:
            raise NotSeenError(
                f"not within {limit:g} s: topic {topic.name} has a route at every broker; does each run?"
            ) from None
        return topic

    # Rules, links, and the clients that they see.

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
        if word == "met":
            met = decode(body, MetBody)
            return (await rule.met(met.timeout, count=met.count)).details
        actions: dict[str, Callable[[], None]] = {
            "release": rule.release,
            "drop_held": rule.drop_held,
            "stop": rule.stop,
        }
        if word not in actions:
            raise HttpError(
                HTTPStatus.NOT_FOUND, f"{word!r} is no action on a rule; actions: met, {', '.join(actions)}"
            )
        decode(body, NoBody)
        actions[word]()
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

    # Snapshots, and the end of a test.

    async def _list_snapshots(self, values: tuple[str, ...], body: bytes) -> object:
        return {"snapshots": self._cluster.snapshots()}

    async def _take_snapshot(self, values: tuple[str, ...], body: bytes) -> object:
        snapshot = decode(body, SnapshotBody)
        await self._members.snapshot(snapshot.name)
        return snapshot

    async def _restore_snapshot(self, values: tuple[str, ...], body: bytes) -> object:
        decode(body, NoBody)
        name = values[0]
        known = self._cluster.snapshots()
        if name not in known:
            raise HttpError(
                HTTPStatus.NOT_FOUND,
                f"there is no snapshot {name!r}; snapshots: {', '.join(known) or 'none'}",
            )
        await self._members.restore(name)
        await self._registered()
        return {"name": name}

    async def _settle(self, values: tuple[str, ...], body: bytes) -> object:
        decode(body, NoBody)
        settled: dict[str, Any] = dict(self._faults.settle())
        changed = {}
        for member in self._members.list():
            if member.state is State.PAUSED:
                changed[member.name] = await self._members.do(Action.RESUME, member.name)
            elif member.state is State.ENDED:
                changed[member.name] = await self._members.do(Action.RESTART, member.name)
        if changed:
            await self._registered()
        return {**settled, "restored": list(changed)}


def _values(pattern: str, path: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the parts of a path that ``*`` stands for; None if the path is another."""
    parts = pattern.split("/")
    if len(parts) != len(path):
        return None
    pairs = list(zip(parts, path, strict=True))
    if any(part not in ("*", value) for part, value in pairs):
        return None
    return tuple(value for part, value in pairs if part == "*")
