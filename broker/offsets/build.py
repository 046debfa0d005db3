"""Builds the consumer offsets, and loads them."""

from __future__ import annotations

from dataclasses import dataclass

from rewindmq.broker.clients.build import Clients
from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.offsets.committer import OffsetCommitter
from rewindmq.broker.offsets.fencing import FencedCommits, Fencing
from rewindmq.broker.offsets.flush import OffsetFlush
from rewindmq.broker.offsets.reset_offset_table import ResetOffsetTable
from rewindmq.broker.offsets.rewinds import Rewinds
from rewindmq.broker.store.files.disk import Disk
from rewindmq.broker.store.store import MessageStore
from rewindmq.broker.store.tables.consumer_offset import ConsumerOffsetTable
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Offsets:
    """The consumers' offsets, and what resets do to them.

    Attributes:
        flush: writes the table.
        marks: targets of server-side resets that no pull has consumed.
        committer: stores commits.
    """

    table: ConsumerOffsetTable
    flush: OffsetFlush
    marks: ResetOffsetTable
    fencing: Fencing
    fenced_commits: FencedCommits
    rewinds: Rewinds
    committer: OffsetCommitter

    def on_close(self, connection: Connection) -> None:
        """Forget what a closed connection has pulled and committed."""
        self.fencing.forget(connection)
        self.rewinds.on_close(connection)
        self.committer.new_offsets.forget(connection)


def build(
    runtime: Runtime, config: BrokerConfig, disk: Disk, store: MessageStore, clients: Clients
) -> Offsets:
    """Return the offsets, loaded.

    Args:
        store: becomes durable before each write of offsets.

    Raises:
        StoreError: if the file cannot be read.
    """
    table = ConsumerOffsetTable(config.table_folder / "consumerOffset.json", disk, store.flush)
    table.load()
    fencing, fenced_commits = Fencing(), FencedCommits()
    consumers = clients.consumers
    rewinds = Rewinds(runtime.clock.now_ms, store, consumers, slaves_serve=config.slave_read_enable)
    return Offsets(
        table,
        OffsetFlush(runtime.workers, table, runtime.probe),
        ResetOffsetTable(),
        fencing,
        fenced_commits,
        rewinds,
        OffsetCommitter(runtime, table, fencing, fenced_commits, consumers, rewinds),
    )
