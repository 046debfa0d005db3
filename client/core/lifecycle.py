"""The life of a producer or consumer: made, running, over; and what their constructors share."""

from __future__ import annotations

from enum import StrEnum
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
    """RocketMQ's own states of a client."""

    CREATE_JUST = "CREATE_JUST"
    RUNNING = "RUNNING"
    SHUTDOWN_ALREADY = "SHUTDOWN_ALREADY"
    START_FAILED = "START_FAILED"


_TRANSITIONS: Final = {
    ServiceState.CREATE_JUST: {ServiceState.START_FAILED, ServiceState.SHUTDOWN_ALREADY},
    # Entered before the first step of a start, left after the last.
    ServiceState.START_FAILED: {ServiceState.RUNNING, ServiceState.SHUTDOWN_ALREADY},
    ServiceState.RUNNING: {ServiceState.SHUTDOWN_ALREADY},
    ServiceState.SHUTDOWN_ALREADY: set[ServiceState](),
}


class Client:
    """Base of producers and consumers: ``await start()`` … ``await shutdown()``, or ``async with``.

    Attributes:
        group: the producer or consumer group.
        config: the settings; its instance name is final once started.
        instance: what is shared with other clients of this process; there once started.
    """

    # What messages call it, and the group name that stands for "none was given".
    KIND: str
    DEFAULT_GROUP: str

    instance: ClientInstance

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
        return self._state is ServiceState.RUNNING

    @property
    def client_id(self) -> str:
        """``ip@instanceName``."""
        return self.config.client_id

    async def start(self) -> None:
        """Begin to work; needs a running event loop.

        Raises:
            ClientError: started before, a setting is missing or out of range, or the group has a client in
                this instance already.
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
        """Stop working; does nothing when not running.

        Cancelled half way, as by a time limit, it lets go of everything at once: brokers find out by
        themselves, and progress that was not committed is lost.
        """
        if self._state is ServiceState.RUNNING:
            self._enter(ServiceState.SHUTDOWN_ALREADY)
            try:
                await self._stop()
                self._let_go()
                await release_instance(self.instance)
            except BaseException:
                self.abort()
                raise
            self._lease.give_back()

    def abort(self) -> None:
        """Stop now, without a word to the brokers and without waiting; does nothing before the start."""
        if self._state is ServiceState.RUNNING:
            self._enter(ServiceState.SHUTDOWN_ALREADY)
        if self._state is ServiceState.SHUTDOWN_ALREADY:
            self._let_go()
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
        if self._state is not ServiceState.RUNNING:
            raise ClientError(f"The {self.KIND} service state not OK, {self._state}")

    # What each kind adds.

    def _check(self) -> None:
        """Raise ClientError for settings that cannot work."""

    def _owns_instance_name(self) -> bool:
        """Whether the instance name DEFAULT is replaced."""
        return True

    async def _start(self) -> None:
        """Register with the instance and begin; undone by ``_abandon_start`` when it raises."""
        raise NotImplementedError

    async def _abandon_start(self) -> None:
        """Leave nothing behind of a start that failed."""
        self.instance.discard(self)
        await release_instance(self.instance)

    async def _started(self) -> None:
        """The state is RUNNING now."""

    async def _stop(self) -> None:
        """End the work under way in good order, and unregister from the instance."""
        raise NotImplementedError

    def _let_go(self) -> None:
        """End everything that works for this client alone, without waiting: after ``_stop``, or instead of
        what it had still to do."""
        raise NotImplementedError
