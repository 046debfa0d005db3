"""The slave's service: finds its master, follows the log and copies the tables."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from rewindmq.broker.background.schedule import Schedule
from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.ha.follower import Follower
from rewindmq.broker.ha.synchronize import SlaveSynchronize
from rewindmq.broker.store.messages.replica import Arrival
from rewindmq.broker.store.store import MessageStore
from rewindmq.protocol.body.ha import HAClientRuntimeInfo, HARuntimeInfo
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.remoting.address import parse_address
from rewindmq.protocol.remoting.connecting import connect_within
from rewindmq.protocol.remoting.runtime import Runtime

_log = logging.getLogger(__name__)

# RocketMQ 4.9.7: RemotingUtil#connect, seconds, not scaled.
_CONNECT_SECONDS: Final = 5.0
# RocketMQ 4.9.4: HAClient's pause between attempts, BrokerController#handleSlaveSynchronize; seconds.
_RETRY_SECONDS: Final = 5.0
_FIRST_COPY_SECONDS: Final = 3.0
_COPY_SECONDS: Final = 10.0


class Slave:
    """Follows a master.

    Changed from 4.9.4: when the address of the master's log changes, the slave stops following the old
    address at once, also while it connects or pauses. 4.9.4 keeps the old connection as long as it lasts.
    """

    def __init__(
        self,
        runtime: Runtime,
        config: BrokerConfig,
        store: MessageStore,
        synchronize: SlaveSynchronize,
        on_arrivals: Callable[[Sequence[Arrival]], None],
    ) -> None:
        self._runtime = runtime
        self._config = config
        self._store = store
        self._synchronize = synchronize
        self._on_arrivals = on_arrivals
        self._ha_address = config.ha_master_address or ""
        self._known = asyncio.Event()
        self._following: asyncio.Task[None] | None = None
        self._follower: Follower | None = None
        # Follows one address; cancelled by a new address or by the task above.
        self._following_one: asyncio.Task[None] | None = None
        self._copying: asyncio.Task[None] | None = None
        # The last logged reason, so that a retry every 5 s does not fill the log.
        self._logged = ""

    @property
    def ha_client_address(self) -> str:
        """This end of the connection to the master's log, ``host:port``; empty without one."""
        return "" if self._follower is None else self._follower.address

    @property
    def has_master(self) -> bool:
        """True if the name server knew a master at the last registration."""
        return self._synchronize.master_address is not None

    def runtime_info(self) -> HARuntimeInfo:
        """Return the state of the connection to the master's log."""
        info = HAClientRuntimeInfo(self._ha_address or None, max_offset=self._store.max_commit_log_offset)
        follower = self._follower
        if follower is not None:
            info.transferred_byte_in_second = follower.last_second_bytes
            info.last_read_timestamp = follower.last_read_ms
            info.last_write_timestamp = follower.last_write_ms
        return HARuntimeInfo(ha_client_runtime_info=info)

    def on_master(self, address: str | None, ha_address: str | None) -> None:
        """Handle the master's addresses from a name server; both are None if it knows no master.

        If the name server knows no master, the slave keeps the last log address, because the master may still
        be running (as in 4.9.4).
        """
        self._synchronize.master_address = address
        if ha_address and not self._config.ha_master_address and ha_address != self._ha_address:
            _log.info("the master's log is at %s", ha_address)
            self._ha_address = ha_address
            if self._following_one is not None:
                self._following_one.cancel()
        if self._ha_address:
            self._known.set()

    def begin(self, schedule: Schedule) -> None:
        """Begin to follow the log and to copy the tables."""
        if self._ha_address:
            self._known.set()
        self._following = asyncio.get_running_loop().create_task(self._follow())
        schedule.every(_FIRST_COPY_SECONDS, _COPY_SECONDS, self._copy)

    async def close(self) -> None:
        """Disconnect from the master."""
        tasks = [task for task in (self._following, self._copying) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _copy(self) -> None:
        if self._copying is None or self._copying.done():
            self._copying = asyncio.get_running_loop().create_task(self._synchronize.copy_all())

    async def _follow(self) -> None:
        """Follow the master's log at one address after another; ends only by cancellation."""
        await self._known.wait()
        this = asyncio.current_task()
        assert this is not None
        while True:
            self._following_one = asyncio.get_running_loop().create_task(self._follow_at(self._ha_address))
            try:
                await self._following_one
            except asyncio.CancelledError:
                if this.cancelling():
                    raise

    async def _follow_at(self, address: str) -> None:
        while True:
            try:
                self._log_failure(address, await self._follow_once(address))
            except (OSError, ValueError, RewindMQError) as error:
                self._log_failure(address, str(error))
            except Exception as error:
                self._log_failure(address, repr(error), error)
            await self._runtime.timers.sleep(_RETRY_SECONDS)

    def _log_failure(self, address: str, reason: str, unexpected: Exception | None = None) -> None:
        if reason != self._logged:
            _log.error("not following the log of %s: %s", address, reason, exc_info=unexpected)
            self._logged = reason

    async def _follow_once(self, address: str) -> str:
        """Follow until the connection ends; return the reason."""
        follower = self._follower = self._new_follower()
        try:
            await self._check_master()
            host, port = parse_address(address)
            await connect_within(self._runtime, lambda: follower, host, port, _CONNECT_SECONDS)
            start = self._store.max_commit_log_offset
            _log.info("following the log of %s from %d on", address, start)
            reason = await follower.ended
            if self._store.max_commit_log_offset > start:
                # After progress, the same reason is news.
                self._logged = ""
            return reason
        finally:
            follower.close("the broker stops, or the master's address has changed")

    def _new_follower(self) -> Follower:
        return Follower(self._runtime, self._config, self._store, self._on_arrivals)

    async def _check_master(self) -> None:
        """Refuse a master with a shorter log; 4.9.4 continues once that log is long enough."""
        end = self._store.max_commit_log_offset
        master_end = await self._synchronize.master_log_end()
        if master_end is not None and end > master_end:
            raise RewindMQError(
                f"this broker's log ends at {end}, beyond the end of the master's log: the master has lost"
                " messages that are still here. This broker copies nothing and removes nothing. Start it as"
                " the master, or remove its store so that it begins again"
            )
