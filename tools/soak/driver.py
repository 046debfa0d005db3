"""One soak from beginning to end."""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
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
from tools.soak.chaos import MORTAL_PRODUCER, NAMESRV, Chaos
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
from tools.soak.processes import Crew
from tools.soak.report import Report
from tools.soak.resets import Rewinder
from tools.soak.verdict import Law, Verdict

_PRODUCERS: Final = ("producer-0", MORTAL_PRODUCER)
_BROKERS: Final = 2
_SAMPLE_SECONDS: Final = 1.0
_PROGRESS_SECONDS: Final = 10.0
_MOST_DISK: Final = 2 << 30
# Small files of the log, so that a soak goes through many.
_BROKER_CONFIG: Final = {
    "mappedFileSizeCommitLog": 16 << 20,
    "messageDelayLevel": DELAY_LEVELS,
    "transactionCheckInterval": TRANSACTION_CHECK_INTERVAL,
    "transactionTimeOut": TRANSACTION_TIME_OUT,
}
_START_SECONDS: Final = 60.0
_ERROR: Final = re.compile(r"Traceback \(most recent call last\)| CRITICAL ")


class Soak:
    """The cast of a soak, and what it goes through.

    Args:
        tell: given a line for people now and then.
    """

    def __init__(self, options: SoakOptions, tell: Callable[[str], None]) -> None:
        self._options = options
        self._tell = tell
        self._watch = MemoryWatch()
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._extra = Verdict()
        self._cluster: AsyncLocalCluster
        self._crew: Crew
        self._chaos: Chaos
        self._brokers: list[str] = []
        self._peak_disk = 0

    async def run(self) -> Report:
        """The soak, its drain and the accounts.

        Raises:
            RewindMQError: it could not begin, or not go on.
            OSError: the directory cannot be written.
        """
        options = self._options
        options.journals.mkdir(parents=True)
        async with self._stage() as admin:
            watching = asyncio.create_task(self._watch_over())
            try:
                await self._begin()
                await self._disturb()
                ended = self._now()
                await self._come_to_rest(admin)
            finally:
                watching.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await watching
        return await asyncio.to_thread(self._judge, ended)

    @asynccontextmanager
    async def _stage(self) -> AsyncIterator[AdminClient]:
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
            self._crew = Crew(options, address)
            exits.push_async_callback(self._crew.close)
            notes = JournalWriter(options.journals / f"driver{SUFFIX}", Header("driver"))
            resets = JournalWriter(options.journals / f"resets{SUFFIX}", Header("resets"))
            for journal in (notes, resets):
                exits.callback(journal.close)
            rewinder = Rewinder(admin, resets, random.Random(options.seed))
            self._chaos = Chaos(
                options, options.groups, self._cluster, self._crew, rewinder, notes, self._remark
            )
            await self._chaos.fill_up()
            for place in _PRODUCERS:
                await self._crew.start_producer(place, options.rate / len(_PRODUCERS))
            yield admin

    async def _make_topics(self, admin: AdminClient) -> None:
        for broker in self._cluster.brokers.values():
            for name in TOPICS.values():
                topic = TopicConfig(topic_name=name, read_queue_nums=QUEUES, write_queue_nums=QUEUES)
                await admin.create_and_update_topic_config(broker.address, topic)

    # While it runs.

    async def _begin(self) -> None:
        """Wait until every process of every group gets messages.

        Raises:
            ClusterError: one does not.
        """
        deadline = self._loop.time() + _START_SECONDS
        while idle := [place for place, worker in self._crew.workers.items() if not worker.is_at_work]:
            if self._loop.time() > deadline:
                raise ClusterError(f"{', '.join(idle)} did not begin to work; see their logs")
            await pause(_SAMPLE_SECONDS)

    async def _disturb(self) -> None:
        """Producers send, and the cards are dealt, until the time is up."""
        await self._chaos.open()
        self._began = self._loop.time()
        self._watch = MemoryWatch()
        chaos = asyncio.create_task(self._chaos.go_on())
        settling = self._loop.call_later(self._options.settled / 2, self._chaos.spare)
        try:
            await asyncio.wait((chaos,), timeout=self._options.seconds)
        finally:
            settling.cancel()
            chaos.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await chaos

    async def _watch_over(self) -> None:
        """Sample memory, look for processes that are gone, say how it goes."""
        next_line = 0.0
        while True:
            now = self._now()
            self._watch.sample(now, self._pids())
            for place in self._crew.collect_the_dead():
                self._remark(f"{place} ended by itself: {self._crew.ended_by_themselves[-1]}")
            if now >= next_line:
                next_line = now + _PROGRESS_SECONDS
                self._peak_disk = max(
                    self._peak_disk, await asyncio.to_thread(disk_used, self._options.directory)
                )
                if self._peak_disk > _MOST_DISK:
                    self._extra.add(Law.DRAIN, f"the disk holds {self._peak_disk >> 20} MiB")
                self._progress(now)
            await pause(_SAMPLE_SECONDS)

    def _pids(self) -> dict[int, str]:
        servers = [self._cluster.namesrv, *self._cluster.brokers.values()]
        return {server.pid: server.name for server in servers if server.is_running} | self._crew.pids()

    def _progress(self, now: float) -> None:
        crew = self._crew
        self._tell(
            f"{now:6.0f} s  sent {crew.count('sent'):,}  acknowledged {crew.count('acked'):,}"
            f"  delivered {crew.count('delivered'):,}  actions {self._chaos.counts.total()}"
            f"  disk {self._peak_disk >> 20} MiB"
        )

    def _remark(self, what: str) -> None:
        self._tell(f"{self._now():6.0f} s  {what}")

    def _now(self) -> float:
        return self._loop.time() - self._began

    # The end.

    async def _come_to_rest(self, admin: AdminClient) -> None:
        """Stop all disturbances and wait until every sent message has arrived."""
        options, crew = self._options, self._crew
        self._remark("no more disturbances; draining")
        await self._chaos.fill_up()
        for place in _PRODUCERS:
            if place in crew.workers:
                crew.workers[place].tell_to_stop_sending()
        behind = await drain(admin, options.groups, lambda: crew.count("delivered"), options.quiet_seconds)
        for line in behind:
            self._extra.add(Law.DRAIN, line)
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

    def _judge(self, ended: float) -> Report:
        """Go through the journals, the samples and the logs."""
        options = self._options
        checker = Checker([group.rules for group in options.groups], options.waits)
        for header, record in read_journals(options.journals):
            checker.feed(header, record)
        verdict = checker.finish()
        needed = {NAMESRV, max(self._brokers), _PRODUCERS[0]}
        needed |= {f"{group.name}-0" for group in options.groups if group.members > 1}
        if options.minutes < MIN_MINUTES:
            needed.clear()
        grown = judge_memory(self._watch, options.settled, ended, frozenset(needed), verdict)
        judge_coverage(options, self._chaos.counts, verdict)
        for line in self._crew.ended_by_themselves:
            verdict.add(Law.DIED, line)
        for path in sorted((options.directory / "logs").glob("*.log")):
            judge_log(path, verdict)
        for violation in self._extra.violations:
            verdict.add(*violation)
        return Report(options, verdict, self._chaos.counts, grown, self._watch.peak_kib(), self._peak_disk)


def judge_log(path: Path, verdict: Verdict) -> None:
    """No process may log an error that it did not foresee."""
    with path.open(errors="replace") as lines:
        for line in lines:
            if _ERROR.search(line):
                verdict.add(Law.LOG, f"{path.name}: {line.strip()[:400]}")


def disk_used(directory: Path) -> int:
    """Bytes that the files take on disk; files may go meanwhile."""
    used = 0
    for path in directory.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            used += path.lstat().st_blocks * 512
    return used
