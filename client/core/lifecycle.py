"""Lifecycle of producers and consumers, and the checks that their constructors share."""

from __future__ import annotations

import asyncio
from enum import StrEnum
from threading import get_ident
from types import TracebackType
from typing import Final, Self

from rewindmq.client.core.checks import require_group
from rewindmq.client.core.client_config import ClientConfig
from rewindmq.client.core.instance import ClientInstance
from rewindmq.client.core.instance_registry import (
    abort_instance,
    get_or_create_instance,
    release_instance,
)
from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.remoting.runtime_lease import RuntimeLease


class ServiceState(StrEnum):
    """States of a client, with RocketMQ's names."""

    CREATE_JUST = "CREATE_JUST"
    RUNNING = "RUNNING"
    SHUTDOWN_ALREADY = "SHUTDOWN_ALREADY"
    START_FAILED = "START_FAILED"


_TRANSITIONS: Final = {
    ServiceState.CREATE_JUST: {ServiceState.START_FAILED, ServiceState.SHUTDOWN_ALREADY},
    # The state while a client starts, and after a start that failed.
    ServiceState.START_FAILED: {ServiceState.RUNNING, ServiceState.SHUTDOWN_ALREADY},
    ServiceState.RUNNING: {ServiceState.SHUTDOWN_ALREADY},
    ServiceState.SHUTDOWN_ALREADY: set[ServiceState](),
}

# Bound once, because every send tests it: an enum's member costs as much as a look-up in a dict.
RUNNING: Final = ServiceState.RUNNING


class Client:
    """Base of producers and consumers: ``await start()`` … ``await shutdown()``, or ``async with``.

    Attributes:
        group: the producer or consumer group.
        config: the settings; the instance name is final after ``start()``.
        instance: shared with other clients of this process; set by ``start()``.
    """

    # The kind of client in error texts, and RocketMQ's placeholder for a group that was not set.
    KIND: str
    DEFAULT_GROUP: str

    instance: ClientInstance
    # The event loop on which the client runs; set by ``start()``.
    _loop: asyncio.AbstractEventLoop
    # The thread of that loop.
    _thread: int

    def __init__(self, group: str, config: ClientConfig, lease: RuntimeLease) -> None:
        require_group(group)
        if group == self.DEFAULT_GROUP:
            raise ClientError(
                f"{self.KIND}Group can not equal {self.DEFAULT_GROUP}, please specify another one."
            )
        self.group = group
        self.config = config
        self.runtime = lease.runtime
        self._lease = lease
        self._state = ServiceState.CREATE_JUST

    @property
    def is_running(self) -> bool:
        """True while the state is RUNNING: from the registration with the instance to the shutdown."""
        return self._state is ServiceState.RUNNING

    @property
    def client_id(self) -> str:
        """``ip@instanceName``, with ``@unitName`` if there is one."""
        return self.config.client_id

    async def start(self) -> None:
        """Start the client; needs a running event loop.

        Raises:
            ClientError: the client was started before, a setting is missing or out of range, or the client
                instance already has a client of this group.
        """
        if self._state is not ServiceState.CREATE_JUST:
            raise ClientError(f"The {self.KIND} service state not OK, maybe started once, {self._state}")
        self._enter(ServiceState.START_FAILED)
        self._check()
        self._lease.take()
        try:
            await self._start_in_instance()
        except BaseException:
            self._lease.give_back()
            raise
        self._loop = asyncio.get_running_loop()
        self._thread = get_ident()
        self._enter(ServiceState.RUNNING)
        try:
            await self._started()
        except BaseException:
            await self.shutdown()
            raise

    async def _start_in_instance(self) -> None:
        if self._owns_instance_name():
            self.config = self.config.with_own_instance_name(self.runtime)
        self.instance = get_or_create_instance(self.runtime, self.config)
        try:
            await self._start()
        except BaseException:
            await self._abandon_start()
            raise

    async def shutdown(self) -> None:
        """Stop the client; do nothing if it is not running.

        If the shutdown is cancelled, for example by a time limit, the client stops at once. It does not
        unregister at the brokers then, and uncommitted progress is lost.
        """
        if self._state is ServiceState.RUNNING:
            self._enter(ServiceState.SHUTDOWN_ALREADY)
            try:
                await self._stop()
                self._cancel_work()
                await release_instance(self.instance)
            except BaseException:
                self.abort()
                raise
            self._lease.give_back()

    def abort(self) -> None:
        """Stop at once, without unregistering at the brokers; do nothing before the start."""
        if self._state is ServiceState.RUNNING:
            self._enter(ServiceState.SHUTDOWN_ALREADY)
        if self._state is ServiceState.SHUTDOWN_ALREADY:
            self._cancel_work()
            self.instance.discard(self)
            abort_instance(self.instance)
            self._lease.give_back()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.shutdown()

    def _enter(self, state: ServiceState) -> None:
        assert state in _TRANSITIONS[self._state], f"{self._state} -> {state}"
        self._state = state

    def _require_running(self) -> None:
        if self._state is not RUNNING:
            raise ClientError(f"The {self.KIND} service state not OK, {self._state}")
        # Faster than ``get_running_loop``, which asks the system for the process id: a loop that runs in this
        # thread is the running loop.
        if get_ident() == self._thread and self._loop.is_running():
            return
        try:
            is_elsewhere = asyncio.get_running_loop() is not self._loop
        except RuntimeError:
            # Plain methods only change memory, so they also work without a loop.
            is_elsewhere = False
        if is_elsewhere:
            raise ClientError(
                f"the {self.KIND} was started on another event loop, which its connections belong to: start a"
                f" {self.KIND} on each loop, or use rewindmq.sync"
            )

    # Hooks for each kind of client.

    def _check(self) -> None:
        """Raise ClientError for settings that cannot work."""

    def _owns_instance_name(self) -> bool:
        """Return True if the instance name DEFAULT is replaced by a unique name."""
        return True

    async def _start(self) -> None:
        """Register with the instance and start to work; ``_abandon_start`` undoes it if it raises."""
        raise NotImplementedError

    async def _abandon_start(self) -> None:
        """Undo a start that failed."""
        self.instance.discard(self)
        await release_instance(self.instance)

    async def _started(self) -> None:
        """Continue the start; the state is RUNNING now."""

    async def _stop(self) -> None:
        """Complete the work in progress, and unregister from the instance."""
        raise NotImplementedError

    def _cancel_work(self) -> None:
        """Stop all work of this client at once, without waiting, after ``_stop`` ended or failed."""
        raise NotImplementedError
