"""Remedy 1 of docs/remedies.md: the application keeps a table of its messages, and works from that.

Each message goes into the table before it is handled. To repair, the rows of the bad time are marked as new
and handled again; the broker has no part in it. The price is paid all the time: every message is stored once
more, for as long as one may want it back, and the table has to be kept, filled and looked through.
"""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from collections.abc import Sequence
from pathlib import Path

from remedies.sms_service import (
    LOST,
    TIME_SCALE,
    Repair,
    SmsService,
    Traffic,
    break_down,
    number_of,
)

from rewindmq import (
    AsyncLocalCluster,
    ConsumeConcurrentlyStatus,
    LocalCluster,
    MessageExt,
)


class ServiceWithTable(SmsService):
    """Remembers every message; one that is there already is not handled again."""

    def __init__(self, cluster: AsyncLocalCluster, path: Path) -> None:
        super().__init__(cluster)
        self._table = sqlite3.connect(path)
        # Fast enough for an example: a crash of the machine, not of the program, may take the last rows back.
        self._table.execute("pragma journal_mode = wal")
        self._table.execute("pragma synchronous = normal")
        self._table.execute(
            "create table message (number integer primary key, at_ms integer, is_done integer, body blob)"
        )

    async def listen(self, messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        for message in messages:
            row = number_of(message.body), message.store_timestamp, message.body
            with self._table:
                self._table.execute("insert or ignore into message values (?, ?, 0, ?)", row)
        self.work_off()
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    def work_off(self) -> None:
        """Handle what is not done."""
        rows = self._table.execute("select number from message where not is_done").fetchall()
        for (number,) in rows:
            self.handle(number)
            with self._table:
                self._table.execute("update message set is_done = 1 where number = ?", (number,))

    def mark_as_new(self, begin_ms: int, end_ms: int) -> int:
        """Have everything of an interval handled again; returns how much that is."""
        with self._table:
            return self._table.execute(
                "update message set is_done = 0 where at_ms between ? and ?", (begin_ms, end_ms)
            ).rowcount

    def close(self) -> None:
        self._table.close()


async def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "messages.db"
        async with (
            LocalCluster(brokers=1, time_scale=TIME_SCALE) as cluster,
            cluster.producer("sms-senders") as producer,
        ):
            service = ServiceWithTable(cluster, path)
            traffic = Traffic(producer)
            async with service.consumer:
                begin, end = await break_down(service, traffic)
                async with Repair(service, traffic) as repair:
                    assert service.mark_as_new(begin, end) == LOST
                    service.work_off()
            service.close()
            repair.show("local message table", carried=0, stored=path.stat().st_size)


if __name__ == "__main__":
    asyncio.run(main())
