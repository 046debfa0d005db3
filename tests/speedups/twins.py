"""Plays the same reads at two brokers under virtual time, one with the native kernel."""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from rewindmq.broker.broker import Broker
from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.store.config import FlushDiskType, StoreConfig
from rewindmq.protocol.points import Probe
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.runtime import Clock, Listener, Network, Runtime
from rewindmq.protocol.remoting.speedups import NativePullKernel, NativeSendKernel, SpeedupsModule
from rewindmq.race.sim import World

SEGMENT_BYTES: Final = 8_192
ENTRIES_PER_FILE: Final = 16
_STATISTICS: Final = (
    *("TOPIC_PUT_NUMS", "TOPIC_PUT_LATENCY"),
    *("GROUP_GET_NUMS", "GROUP_GET_LATENCY", "QUEUE_GET_NUMS"),
)
# A reset's and a registration's timers do not matter here, but suspended pulls end within this time.
_SETTLED_SECONDS: Final = 60.0


@dataclass(frozen=True)
class TwinStep:
    """A read, or what happens between two reads.

    Attributes:
        data: the bytes that the broker reads.
        connection: which of the two connections they come from.
        ms: how far the wall clock goes first; less than 0 sets it back.
        seconds: how long the broker runs after the read.
        disk_full: what the broker believes of its disk from now on; None changes nothing.
    """

    data: bytes = b""
    connection: int = 0
    ms: int = 0
    seconds: float = 0.0
    disk_full: bool | None = None


@dataclass(frozen=True)
class TwinState:
    """What a broker has written and counted.

    Attributes:
        sent: the bytes to each connection.
        files: the content of every file of the log and of the queues, by path.
        counts: the statistics of sends and pulls.
        queues: the next and the lowest offset of every queue.
        offsets: the file of the committed offsets, as it would be written.
        waiting: the number of suspended pulls before they end.
        is_closed: whether the broker has closed each connection.
    """

    sent: tuple[bytes, ...]
    files: dict[str, bytes]
    counts: tuple[object, ...]
    queues: dict[str, tuple[int, int]]
    offsets: str
    waiting: int
    is_closed: tuple[bool, ...]


class Encoded(NamedTuple):
    """How many frames of each kind the kernels have encoded."""

    sends: int
    pulls: int


class _MovedClock:
    """A clock of a world whose wall clock can be set."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.moved_ms = 0
        self.scale = 1.0

    def now_ms(self) -> int:
        return self._clock.now_ms() + self.moved_ms

    def monotonic(self) -> float:
        return self._clock.monotonic()


class _RecordingNetwork:
    """Records the connection factories of listeners."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self.factories: list[Callable[[], asyncio.Protocol]] = []

    async def listen(self, factory: Callable[[], asyncio.Protocol], host: str, port: int) -> Listener:
        self.factories.append(factory)
        return await self._network.listen(factory, host, port)

    async def connect(
        self, factory: Callable[[], asyncio.Protocol], host: str, port: int
    ) -> tuple[asyncio.Transport, asyncio.Protocol]:
        return await self._network.connect(factory, host, port)


class _Sink(asyncio.Transport):
    """Keeps what the broker writes."""

    def __init__(self, host: str) -> None:
        super().__init__({"peername": (host, 50_001), "sockname": ("10.0.0.1", 10_911)})
        self.written = bytearray()
        self.is_closed = False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def write(self, data: Any) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    abort = close


class _CountingKernel:
    """Counts the sends that a kernel has encoded."""

    def __init__(self, kernel: NativeSendKernel) -> None:
        self._kernel = kernel
        self.clear = kernel.clear
        self.frames = 0

    def encode(self, *args: Any) -> Any:
        encoded = self._kernel.encode(*args)
        if encoded is not None:
            self.frames += sum(requests for _, _, requests, _, _, _ in encoded[3])
        return encoded


class _CountingPullKernel:
    """Counts the pulls that a kernel has answered."""

    def __init__(self, kernel: NativePullKernel) -> None:
        self._kernel = kernel
        self.parse = kernel.parse
        self.frames = 0

    def encode(self, *args: Any) -> Any:
        encoded = self._kernel.encode(*args)
        self.frames += encoded is not None
        return encoded


class _CountingSpeedups:
    """The kernels of brokers, which count."""

    def __init__(self, speedups: SpeedupsModule) -> None:
        self._speedups = speedups
        self.kernels: list[_CountingKernel] = []
        self.pull_kernels: list[_CountingPullKernel] = []

    def SendKernel(self, **keywords: Any) -> _CountingKernel:
        self.kernels.append(_CountingKernel(self._speedups.SendKernel(**keywords)))
        return self.kernels[-1]

    def PullKernel(self, **keywords: Any) -> _CountingPullKernel:
        self.pull_kernels.append(_CountingPullKernel(self._speedups.PullKernel(**keywords)))
        return self.pull_kernels[-1]


def play_twice(
    speedups: SpeedupsModule,
    steps: Sequence[TwinStep],
    profile: Profile = Profile.V49,
    hosts: tuple[str, ...] = ("10.0.0.8", "10.0.0.9"),
    flush: FlushDiskType = FlushDiskType.ASYNC_FLUSH,
    probe: Probe | None = None,
    segment_bytes: int = SEGMENT_BYTES,
    store_limits: Mapping[str, int] = MappingProxyType({}),
    **switches: Any,
) -> tuple[TwinState, TwinState, Encoded]:
    """Play the steps in pure Python and with the kernel.

    Args:
        hosts: the peers of the connections.
        probe: of both brokers.
        segment_bytes: of their logs.
        store_limits: further arguments of their ``StoreConfig``.
        switches: keys of ``BrokerConfig``.

    Returns:
        What came of it in pure Python, what with the kernels, and what these have encoded.
    """
    counting = _CountingSpeedups(speedups)
    pure = _play(None, steps, profile, hosts, flush, probe, segment_bytes, store_limits, switches)
    native = _play(counting, steps, profile, hosts, flush, probe, segment_bytes, store_limits, switches)
    return (
        pure,
        native,
        Encoded(
            sum(kernel.frames for kernel in counting.kernels),
            sum(kernel.frames for kernel in counting.pull_kernels),
        ),
    )


def _play(
    speedups: SpeedupsModule | None,
    steps: Sequence[TwinStep],
    profile: Profile,
    hosts: tuple[str, ...],
    flush: FlushDiskType,
    probe: Probe | None,
    segment_bytes: int,
    store_limits: Mapping[str, int],
    switches: dict[str, Any],
) -> TwinState:
    with tempfile.TemporaryDirectory(prefix="rewindmq-twin-") as directory:
        files: dict[str, Any] = {
            "mapped_file_size_commit_log": segment_bytes,
            "mapped_file_size_consume_queue": ENTRIES_PER_FILE * 20,
            "flush_disk_type": flush,
        }
        store = StoreConfig(**{**files, **store_limits})
        config = BrokerConfig(
            store_path_root_dir=directory, listen_port=10_911, profile=profile, store=store, **switches
        )
        world = World(1)
        clock = _MovedClock(world.runtime().clock)
        network = _RecordingNetwork(world.runtime().network)
        runtime = replace(
            world.runtime(probe=probe),
            clock=clock,
            network=network,
            speedups=speedups,
            random=random.Random(1),
        )
        return world.run(_played(runtime, clock, network, config, steps, hosts))


async def _played(
    runtime: Runtime,
    clock: _MovedClock,
    network: _RecordingNetwork,
    config: BrokerConfig,
    steps: Sequence[TwinStep],
    hosts: tuple[str, ...],
) -> TwinState:
    broker = Broker(runtime, config)
    await broker.start()
    sinks = [_Sink(host) for host in hosts]
    connections = [network.factories[0]() for _ in hosts]
    for connection, sink in zip(connections, sinks, strict=True):
        connection.connection_made(sink)
    try:
        for step in steps:
            clock.moved_ms += step.ms
            if step.disk_full is not None:
                broker.set_disk_full(step.disk_full)
            if step.data and not sinks[step.connection].is_closed:
                connections[step.connection].data_received(step.data)
            await runtime.timers.sleep(step.seconds)
        waiting = broker.context.pulls.long_polling.suspended_count
        await runtime.timers.sleep(_SETTLED_SECONDS)
        return _outcome(broker, config.root, sinks, waiting)
    finally:
        for connection in connections:
            connection.connection_lost(None)
        await broker.close()


def _outcome(broker: Broker, root: Path, sinks: Sequence[_Sink], waiting: int) -> TwinState:
    context = broker.context
    stats = context.stats
    files = {
        str(path.relative_to(root)): path.read_bytes()
        for folder in ("commitlog", "consumequeue")
        for path in sorted((root / folder).rglob("*"))
        if path.is_file()
    }
    totals = (
        *(stats.put_total, stats.put_bytes, stats.put_failed, stats.own_puts, stats.batch_extra),
        *(stats.get_total, stats.found_total, stats.missed_total, stats.items.pulls.last is None),
    )
    items = {
        name: {key: (item.times, item.value, item.size) for key, item in found.items()}
        for name, (found, is_size) in stats.items._names.items()
        if not is_size and name in _STATISTICS
    }
    queues = {
        str(path.relative_to(root / "consumequeue")): (
            context.store.max_offset(path.parent.name, int(path.name)),
            context.store.min_offset(path.parent.name, int(path.name)),
        )
        for path in sorted((root / "consumequeue").glob("*/*"))
    }
    return TwinState(
        tuple(bytes(sink.written) for sink in sinks),
        files,
        (totals, items),
        queues,
        context.offsets.table.text(),
        waiting,
        tuple(sink.is_closed for sink in sinks),
    )
