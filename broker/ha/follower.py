"""A slave's connection to its master's log (4.9.4 ``HAService.HAClient``)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.ha.transfer_rate import TransferRate
from rewindmq.broker.store.errors import StoreError
from rewindmq.broker.store.messages.replica import Arrival
from rewindmq.broker.store.store import MessageStore
from rewindmq.protocol.errors import FrameError
from rewindmq.protocol.ha_frame import Transfer, TransferDecoder, encode_report
from rewindmq.protocol.remoting.address import format_address

if TYPE_CHECKING:
    from rewindmq.protocol.remoting.runtime import Cancellable, Runtime


class Follower(asyncio.Protocol):
    """Appends the received log to the store, and reports the position.

    Changed from 4.9.4: the slave reports as soon as it is connected; 4.9.4 does after 5 s. It closes the
    connection if the master was silent for ``haHousekeepingInterval``; 4.9.4 measures from the slave's own
    last report.

    Args:
        on_arrivals: called with the messages that became readable.

    Attributes:
        address: this end of the connection, ``host:port``; empty without a connection.
        last_read_ms: when the master sent something, or connected, ms since 1970; 0 without a connection.
        last_write_ms: when this end last reported, ms since 1970.
        ended: done when the connection is closed, with the reason in a few words or an unexpected exception.
    """

    def __init__(
        self,
        runtime: Runtime,
        config: BrokerConfig,
        store: MessageStore,
        on_arrivals: Callable[[Sequence[Arrival]], None],
    ) -> None:
        self._runtime = runtime
        self._heartbeat_seconds = config.ha_send_heartbeat_interval / 1_000
        self._silence_seconds = config.ha_housekeeping_interval / 1_000
        self._store = store
        self._on_arrivals = on_arrivals
        self._decoder = TransferDecoder()
        self._transport: asyncio.Transport | None = None
        self._heard_at = 0.0
        self._reported = 0
        self._timer: Cancellable | None = None
        self._rate = TransferRate()
        self.last_read_ms = self.last_write_ms = 0
        self.address = ""
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        if self.ended.done():
            # ``close`` was called while connecting.
            self._transport.close()
            return
        self.address = format_address(transport.get_extra_info("sockname"))
        try:
            self._store.restart_replica()
        except Exception as error:
            self._fail(error)
            return
        self._hear()
        self._tick()

    def data_received(self, data: bytes) -> None:
        if self.ended.done():
            return
        self._hear(len(data))
        try:
            for transfer in self._decoder.receive(data):
                self._take(transfer)
        except (FrameError, StoreError) as error:
            self.close(str(error))
            return
        except Exception as error:
            self._fail(error)
            return
        if self._store.replica_end > self._reported:
            self._report()

    def connection_lost(self, exc: Exception | None) -> None:
        self.close("the master closed the connection" if exc is None else str(exc))

    def close(self, reason: str) -> None:
        """Close the connection, or stop connecting."""
        if not self.ended.done():
            self.ended.set_result(reason)
        self._release()

    @property
    def last_second_bytes(self) -> int:
        """Bytes received in the last whole second."""
        return self._rate.last_second(self._runtime.clock.monotonic())

    def _hear(self, count: int = 0) -> None:
        self._heard_at = self._runtime.clock.monotonic()
        self.last_read_ms = self._runtime.clock.now_ms()
        self._rate.add(count, self._heard_at)

    def _fail(self, error: Exception) -> None:
        if not self.ended.done():
            self.ended.set_exception(error)
        self._release()

    def _release(self) -> None:
        self.address = ""
        self.last_read_ms = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._transport is not None:
            self._transport.close()

    def _take(self, transfer: Transfer) -> None:
        store = self._store
        if transfer.data:
            arrivals = store.append_replica(transfer.position, transfer.data)
            if arrivals:
                self._on_arrivals(arrivals)
        elif store.replica_position and transfer.position != store.replica_position:
            raise StoreError(
                f"the master is at log position {transfer.position}, not {store.replica_position}"
            )

    def _tick(self) -> None:
        silence = self._runtime.clock.monotonic() - self._heard_at
        if silence > self._silence_seconds:
            self.close(f"the master has sent nothing for {silence:.0f} s")
            return
        self._report()
        self._timer = self._runtime.timers.call_later(self._heartbeat_seconds, self._tick)

    def _report(self) -> None:
        assert self._transport is not None
        self._reported = self._store.replica_end
        self._transport.write(encode_report(self._reported))
        self.last_write_ms = self._runtime.clock.now_ms()
