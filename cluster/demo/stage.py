"""The running processes and clients of the experiment, and the operations that its phases share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from rewindmq.client.admin.admin_client import AdminClient
from rewindmq.client.pull.pull_consumer import PullConsumer
from rewindmq.cluster.async_cluster import AsyncLocalCluster
from rewindmq.cluster.demo.display import Display
from rewindmq.cluster.demo.journal import DeliveryCounts, DemoJournal, compare
from rewindmq.cluster.demo.names import CONSUMER_GROUP, TOPIC
from rewindmq.cluster.demo.processes import ConsumerWorker, ProducerWorker
from rewindmq.cluster.demo.report import DemoReport, Figure
from rewindmq.cluster.demo.timeline import AdminStep
from rewindmq.cluster.errors import ClusterError
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.runtime import Runtime

_POLL_SECONDS: Final = 0.02
# Real seconds beyond the scaled waits, for a busy machine.
_EXTRA_SECONDS: Final = 60.0
_PULL_BATCH: Final = 32


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """Options of the demo.

    Attributes:
        messages: number of messages that the first phase sends, at least 100.
        time_scale: factor on every scheduled wait.
        profile: the release to imitate.
        directory: the cluster's directory, kept at the end; None: a temporary directory.
    """

    messages: int = 10_000
    time_scale: float = 1.0
    profile: Profile = Profile.V49
    directory: Path | None = None


@dataclass(slots=True)
class DemoStage:
    """The processes, clients and records that a phase needs; ``open_stage`` creates it."""

    options: DemoOptions
    cluster: AsyncLocalCluster
    display: Display
    report: DemoReport
    runtime: Runtime
    admin: AdminClient
    puller: PullConsumer
    producer: ProducerWorker
    consumers: list[ConsumerWorker]
    journal: DemoJournal
    admin_steps: list[AdminStep] = field(default_factory=list)

    # Checks.

    def figure(
        self, phase: str, name: str, expected: float, measured: float, *, at_least: bool = False
    ) -> None:
        """Add one verified number to the report."""
        self.report.figures.append(Figure(phase, name, expected, measured, at_least))

    def verify_deliveries(
        self, phase: str, since: int, expected: dict[MessageQueue, range]
    ) -> DeliveryCounts:
        """Check that each expected message, and no other, was delivered once since a mark of the journal."""
        result = compare(self.journal.deliveries(since), expected)
        self.figure(phase, "delivered exactly once", sum(map(len, expected.values())), result.exactly_once)
        self.figure(phase, "delivered more than once", 0, result.repeated)
        self.figure(phase, "delivered unexpectedly", 0, result.unexpected)
        return result

    # Waiting.

    async def wait_for(
        self,
        what: str,
        total: int,
        count: Callable[[], int],
        protocol_seconds: float,
        *,
        extra_seconds: float = _EXTRA_SECONDS,
    ) -> int:
        """Wait until ``count()`` reaches ``total``, showing the step ``what``; return after a time-out, too.

        Args:
            protocol_seconds: the sum of the protocol's own waits, before scaling.
            extra_seconds: real seconds to wait beyond that.

        Returns:
            The last count.
        """
        limit = protocol_seconds * self.options.time_scale + extra_seconds
        with self.display.step(what, total) as advance:
            for _ in range(int(limit / _POLL_SECONDS)):
                done = count()
                advance(done)
                if done >= total:
                    break
                self.check_workers()
                await self.pause(_POLL_SECONDS)
        return done

    async def wait_until(self, what: str, is_so: Callable[[], Awaitable[bool]]) -> None:
        """Poll a condition until it is true.

        Raises:
            ClusterError: the condition did not become true in time.
        """
        limit = 30.0 * self.options.time_scale + _EXTRA_SECONDS
        for _ in range(int(limit / _POLL_SECONDS)):
            if await is_so():
                return
            self.check_workers()
            await self.pause(_POLL_SECONDS)
        raise ClusterError(f"still waiting for {what} after {limit:.0f} s")

    async def pause(self, seconds: float) -> None:
        """Sleep for real seconds."""
        await self.runtime.timers.sleep(seconds)

    def check_workers(self) -> None:
        """Raise ClusterError if a worker has ended."""
        for worker in (self.producer, *self.consumers):
            worker.check()

    # Queries.

    async def ends(self) -> dict[MessageQueue, int]:
        """Return each queue's max offset: one past its last message."""
        stats = await self.admin.topics.examine_topic_stats(TOPIC)
        return {queue: entry.max_offset for queue, entry in sorted(stats.offset_table.items())}

    async def stored_offsets(self) -> dict[MessageQueue, int]:
        """Return the group's stored offsets by queue."""
        stats = await self.admin.groups.examine_consume_stats(CONSUMER_GROUP, TOPIC)
        return {queue: entry.consumer_offset for queue, entry in sorted(stats.offset_table.items())}

    async def settle(self) -> None:
        """Wait until the group has stored the end of every queue."""

        async def is_settled() -> bool:
            return await self.stored_offsets() == await self.ends()

        await self.wait_until("the group to store the end of every queue", is_settled)

    async def read_queue(self, queue: MessageQueue, end: int) -> list[MessageExt]:
        """Pull all messages of a queue before ``end``."""
        messages: list[MessageExt] = []
        while len(messages) < end:
            result = await self.puller.pull(queue, "*", len(messages), _PULL_BATCH)
            if not result.messages:
                raise ClusterError(f"{queue} ends at {len(messages)}, not at {end}")
            messages += result.messages
        return messages

    def broker_names(self) -> dict[str, str]:
        """Return broker names by address."""
        return {broker.address: name for name, broker in self.cluster.brokers.items()}
