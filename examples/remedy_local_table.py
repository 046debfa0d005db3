"""Remedy 1 of docs/remedies.md: the application stores its messages in a table, and handles them from there.

Each message goes into the table before it is handled. For a repair, the application marks the rows of the
outage as new and handles them again, without the broker. The cost is permanent: every message is stored a
second time, and the application maintains the table.
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
    """Stores every message in a table; a message that is already there is not handled again."""

    def __init__(self, cluster: AsyncLocalCluster, path: Path) -> None:
        super().__init__(cluster)
        self._table = sqlite3.connect(path)
        # Fast enough for an example. The last rows survive a crash of the program, but not of the machine.
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
        self.handle_new_rows()
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    def handle_new_rows(self) -> None:
        """Handle the messages of all rows that are not done."""
        rows = self._table.execute("select number from message where not is_done").fetchall()
        for (number,) in rows:
            self.handle(number)
            with self._table:
                self._table.execute("update message set is_done = 1 where number = ?", (number,))

    def mark_as_new(self, begin_ms: int, end_ms: int) -> int:
        """Mark the rows of an interval as not done, and return their number."""
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
                    service.handle_new_rows()
            service.close()
            repair.show("local message table", carried=0, stored=path.stat().st_size)


if __name__ == "__main__":
    asyncio.run(main())
