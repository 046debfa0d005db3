"""ServerPaths: the cluster, its members, disks and clocks, and topics."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from http import HTTPStatus

import rewindmq
from rewindmq.cluster.local_cluster import LocalCluster
from rewindmq.cluster.up.messages import MemberAction, MemberState
from rewindmq.cluster.up.topics import create_topics
from rewindmq.protocol.names import is_system_topic, topic_fault
from rewindmq.testing.control.bodies import DiskBody, NoBody, TopicBody, TravelBody, decode
from rewindmq.testing.control.http_request import HttpError
from rewindmq.testing.control.member_control import MemberControl
from rewindmq.testing.control.paths import Handlers, action_of
from rewindmq.testing.errors import KitError, NotSeenError


class ServerPaths:
    """Answers requests about the servers.

    Args:
        entrances: further fields of ``GET /v1/cluster``: addresses and folders.
        topic_seconds: limit for a new topic's route, in real seconds.
    """

    def __init__(
        self,
        cluster: LocalCluster,
        control: MemberControl,
        entrances: Mapping[str, str],
        topic_seconds: float,
    ) -> None:
        self._cluster = cluster
        self._control = control
        self._entrances = entrances
        self._topic_seconds = topic_seconds

    @property
    def handlers(self) -> Handlers:
        """The paths."""
        return {
            ("GET", "health"): self._health,
            ("GET", "cluster"): self._show_cluster,
            ("GET", "members"): self._list_members,
            ("POST", "members/*/*"): self._change_member,
            ("POST", "disk_full"): self._fill_disk,
            ("POST", "travel"): self._travel,
            ("POST", "topics"): self._create_topic,
        }

    async def _health(self, values: tuple[str, ...], body: bytes) -> object:
        states = {member.name: member.state for member in self._control.list()}
        return {"healthy": set(states.values()) == {MemberState.RUNNING}, "members": states}

    async def _show_cluster(self, values: tuple[str, ...], body: bytes) -> object:
        options = self._cluster.client_options
        return {
            "version": rewindmq.__version__,
            "pid": os.getpid(),
            "directory": str(self._cluster.directory),
            "namesrv": self._cluster.namesrv_address,
            **self._entrances,
            "profile": options["profile"],
            "time_scale": options["time_scale"],
            **self._control.simulated_faults,
        }

    async def _list_members(self, values: tuple[str, ...], body: bytes) -> object:
        return {"members": self._control.list()}

    async def _change_member(self, values: tuple[str, ...], body: bytes) -> object:
        decode(body, NoBody)
        name, word = values
        known = [member.name for member in self._control.list()]
        if name not in known:
            raise HttpError(HTTPStatus.NOT_FOUND, f"there is no member {name!r}; members: {', '.join(known)}")
        actions = {action.value: action for action in MemberAction if action is not MemberAction.LIST}
        return await self._control.do(action_of(actions, word, "a member"), name)

    async def _fill_disk(self, values: tuple[str, ...], body: bytes) -> object:
        await self._control.fill_disk(decode(body, DiskBody))
        return self._control.simulated_faults

    async def _travel(self, values: tuple[str, ...], body: bytes) -> object:
        await self._control.travel(decode(body, TravelBody).seconds)
        return self._control.simulated_faults

    async def _create_topic(self, values: tuple[str, ...], body: bytes) -> object:
        topic = decode(body, TopicBody)
        fault = topic_fault(topic.name)
        if fault is not None:
            raise KitError(f"{topic.name!r} cannot be a topic: {fault}")
        if is_system_topic(topic.name):
            raise KitError(f"{topic.name} is a topic of the brokers themselves: choose another name")
        try:
            async with asyncio.timeout(self._topic_seconds):
                await create_topics(self._cluster, [(topic.name, topic.queues)])
        except TimeoutError:
            raise NotSeenError(
                f"not within {self._topic_seconds:g} s: topic {topic.name} has a route at every broker; does"
                " each run?"
            ) from None
        return topic
