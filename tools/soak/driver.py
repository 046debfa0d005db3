"""Runs one soak from its start to the report."""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from rewindmq import AsyncLocalCluster, ClusterError, LocalCluster
from rewindmq.client.admin.admin_client import AdminClient
from rewindmq.client.pull.pull_consumer import PullConsumer
from rewindmq.protocol.body.registration import TopicConfig
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.runtime import system_runtime
from tools.soak.chaos import KILLABLE_PRODUCER, NAMESRV, Chaos
from tools.soak.checker import Checker
from tools.soak.coverage import MIN_MINUTES, judge_coverage
from tools.soak.drain import drain, journal_dead_letters, make_readable
from tools.soak.journal import SUFFIX, Header, JournalWriter, read_journals
from tools.soak.memory import MemoryWatch, judge_memory
from tools.soak.message import TOPICS
from tools.soak.options import (
    DELAY_LEVELS,
    QUEUES,
    TRANSACTION_CHECK_INTERVAL,
    TRANSACTION_TIME_OUT,
    SoakOptions,
)
from tools.soak.pauses import pause
from tools.soak.processes import HOSTILE, WorkerPool
from tools.soak.report import SoakReport
from tools.soak.resets import Rewinder
from tools.soak.verdict import SoakVerdict, ViolationKind

_PRODUCERS: Final = ("producer-0", KILLABLE_PRODUCER)
_BROKERS: Final = 2
_SAMPLE_SECONDS: Final = 1.0
_PROGRESS_SECONDS: Final = 10.0
_MAX_DISK_BYTES: Final = 2 << 30
# Small commit log files, so that a soak fills many.
_BROKER_CONFIG: Final = {
    "mappedFileSizeCommitLog": 16 << 20,
    "messageDelayLevel": DELAY_LEVELS,
    "transactionCheckInterval": TRANSACTION_CHECK_INTERVAL,
    "transactionTimeOut": TRANSACTION_TIME_OUT,
}
_START_SECONDS: Final = 60.0
_ERROR: Final = re.compile(r"Traceback \(most recent call last\)| CRITICAL ")


class Soak:
    """A soak: its cluster, workers and actions, and the order in which they run.

    Args:
        progress: called with a progress line for people now and then.
    """

    def __init__(self, options: SoakOptions, progress: Callable[[str], None]) -> None:
        self._options = options
        self._progress = progress
        self._watch = MemoryWatch()
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._extra = SoakVerdict()
        self._cluster: AsyncLocalCluster
        self._pool: WorkerPool
        self._chaos: Chaos
        self._brokers: list[str] = []
        self._peak_disk = 0
        self._attacks: Counter[str] = Counter()

    async def run(self) -> SoakReport:
        """Run the soak, drain the queues and return the report.

        Raises:
            RewindMQError: the soak cannot start or go on.
            OSError: the directory cannot be written.
        """
        options = self._options
        options.journals.mkdir(parents=True)
        async with self._started_cluster() as admin:
            watching = asyncio.create_task(self._monitor())
            try:
                await self._begin()
                await self._run_actions()
                ended = self._now()
                await self._drain(admin)
            finally:
                watching.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await watching
        return await asyncio.to_thread(self._judge, ended)

    @asynccontextmanager
    async def _started_cluster(self) -> AsyncIterator[AdminClient]:
        options = self._options
        async with AsyncExitStack() as exits:
            self._cluster = await exits.enter_async_context(
                LocalCluster(
                    _BROKERS,
                    directory=options.directory,
                    time_scale=options.time_scale,
                    profile=options.profile,
                    broker_config=_BROKER_CONFIG,
                )
            )
            runtime = system_runtime(time_scale=options.time_scale)
            exits.callback(runtime.workers.close)
            address = self._cluster.namesrv_address
            admin = await exits.enter_async_context(
                AdminClient(address, runtime=runtime, profile=options.profile)
            )
            self._brokers = list(self._cluster.brokers)
            await self._make_topics(admin)
            self._pool = WorkerPool(options, address)
            exits.push_async_callback(self._pool.close)
            notes = JournalWriter(options.journals / f"driver{SUFFIX}", Header("driver"))
            resets = JournalWriter(options.journals / f"resets{SUFFIX}", Header("resets"))
            for journal in (notes, resets):
                exits.callback(journal.close)
            rewinder = Rewinder(admin, resets, random.Random(options.seed))
            self._chaos = Chaos(
                options, options.groups, self._cluster, self._pool, rewinder, notes, self._report
            )
            await self._chaos.fill_up()
            for place in _PRODUCERS:
                await self._pool.start_producer(place, options.rate / len(_PRODUCERS))
            if "hostile" not in options.without:
                await self._pool.start_hostile_peer()
            yield admin

    async def _make_topics(self, admin: AdminClient) -> None:
        for broker in self._cluster.brokers.values():
            for name in TOPICS.values():
                topic = TopicConfig(topic_name=name, read_queue_nums=QUEUES, write_queue_nums=QUEUES)
                await admin.topics.create_and_update_topic_config(broker.address, topic)

    # While it runs.

    async def _begin(self) -> None:
        """Wait until every process of every group has sent or received messages.

        Raises:
            ClusterError: a process has not.
        """
        deadline = self._loop.time() + _START_SECONDS
        while idle := [place for place, worker in self._pool.workers.items() if not worker.is_at_work]:
            if self._loop.time() > deadline:
                raise ClusterError(f"{', '.join(idle)} sent and received nothing; see their logs")
            await pause(_SAMPLE_SECONDS)

    async def _run_actions(self) -> None:
        """Carry out the actions while producers send, until the time is up."""
        await self._chaos.run_opening()
        self._began = self._loop.time()
        self._watch = MemoryWatch()
        chaos = asyncio.create_task(self._chaos.run())
        settling = self._loop.call_later(self._options.settled / 2, self._chaos.protect_servers)
        try:
            await asyncio.wait((chaos,), timeout=self._options.seconds)
        finally:
            settling.cancel()
            chaos.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await chaos

    async def _monitor(self) -> None:
        """Sample memory, look for processes that have ended, and print progress."""
        next_line = 0.0
        while True:
            now = self._now()
            self._watch.sample(now, self._pids())
            for place in self._pool.collect_ended():
                self._report(f"{place} ended by itself: {self._pool.ended_by_themselves[-1]}")
            if now >= next_line:
                next_line = now + _PROGRESS_SECONDS
                self._peak_disk = max(
                    self._peak_disk, await asyncio.to_thread(disk_used, self._options.directory)
                )
                if self._peak_disk > _MAX_DISK_BYTES:
                    self._extra.add(ViolationKind.DRAIN, f"the files take {self._peak_disk >> 20} MiB")
                self._report_counts(now)
            await pause(_SAMPLE_SECONDS)

    def _pids(self) -> dict[int, str]:
        servers = [self._cluster.namesrv, *self._cluster.brokers.values()]
        return {server.pid: server.name for server in servers if server.is_running} | self._pool.pids()

    def _report_counts(self, now: float) -> None:
        pool = self._pool
        self._progress(
            f"{now:6.0f} s  sent {pool.count('sent'):,}  acknowledged {pool.count('acked'):,}"
            f"  delivered {pool.count('delivered'):,}  actions {self._chaos.counts.total()}"
            f"  disk {self._peak_disk >> 20} MiB"
        )

    def _report(self, what: str) -> None:
        self._progress(f"{self._now():6.0f} s  {what}")

    def _now(self) -> float:
        return self._loop.time() - self._began

    # The end.

    async def _drain(self, admin: AdminClient) -> None:
        """Stop all disturbances and wait until every sent message has arrived."""
        options, pool = self._options, self._pool
        self._report("no more disturbances; draining")
        self._attacks = pool.attacks()
        if HOSTILE in pool.workers:
            await pool.end(HOSTILE, kill=False)
        await self._chaos.fill_up()
        for place in _PRODUCERS:
            if place in pool.workers:
                pool.workers[place].tell_to_stop_sending()
        behind = await drain(admin, options.groups, lambda: pool.count("delivered"), options.quiet_seconds)
        for line in behind:
            self._extra.add(ViolationKind.DRAIN, line)
        runtime = system_runtime(time_scale=options.time_scale)
        journal = JournalWriter(options.journals / f"letters{SUFFIX}", Header("letters"))
        try:
            reader = PullConsumer("SoakLetters", self._cluster.namesrv_address, runtime=runtime)
            async with reader:
                for group in options.groups:
                    if options.profile is Profile.V42:
                        addresses = [broker.address for broker in self._cluster.brokers.values()]
                        await make_readable(admin, group, addresses)
                    await journal_dead_letters(group, reader, journal)
        finally:
            journal.close()
            runtime.workers.close()

    def _judge(self, ended: float) -> SoakReport:
        """Check the journals, the memory samples and the logs."""
        options = self._options
        checker = Checker([group.rules for group in options.groups], options.waits)
        for header, record in read_journals(options.journals):
            checker.feed(header, record)
        verdict = checker.finish()
        needed = {NAMESRV, max(self._brokers), _PRODUCERS[0]}
        needed |= {f"{group.name}-0" for group in options.groups if group.consumers > 1}
        if options.minutes < MIN_MINUTES:
            needed.clear()
        grown = judge_memory(self._watch, options.settled, ended, frozenset(needed), verdict)
        self._chaos.counts.update(self._attacks)
        judge_coverage(options, self._chaos.counts, verdict)
        for line in self._pool.ended_by_themselves:
            verdict.add(ViolationKind.DIED, line)
        for path in sorted((options.directory / "logs").glob("*.log")):
            judge_log(path, verdict)
        for violation in self._extra.violations:
            verdict.add(*violation)
        return SoakReport(
            options, verdict, self._chaos.counts, grown, self._watch.peak_kib(), self._peak_disk
        )


def judge_log(path: Path, verdict: SoakVerdict) -> None:
    """Add a violation for every unexpected error in a process's log."""
    with path.open(errors="replace") as lines:
        for line in lines:
            if _ERROR.search(line):
                verdict.add(ViolationKind.LOG, f"{path.name}: {line.strip()[:400]}")


def disk_used(directory: Path) -> int:
    """Return how many bytes the files take on disk; files may disappear meanwhile."""
    used = 0
    for path in directory.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            used += path.lstat().st_blocks * 512
    return used
