"""Retention: a broker deletes old messages, file by file. A reset reaches only the messages that are left.

By default a broker keeps messages for 72 hours, and deletes files at four in the morning. The broker of this
program deletes all files except the newest when the administrator tells it to.
"""

from __future__ import annotations

import asyncio

from rewindmq import (
    LocalCluster,
    Message,
)

TIME_SCALE = 0.02
CONFIG = {
    # Files of 64 KiB; RocketMQ's have 1 GiB.
    "mappedFileSizeCommitLog": 65_536,
    "mappedFileSizeConsumeQueue": 2_000,
    # Hours that a file is kept; the default is 72.
    "fileReservedTime": 0,
    # An hour that does not exist, so only deleteExpiredCommitLog deletes files.
    "deleteWhen": "99",
}


async def main() -> None:
    async with (
        LocalCluster(brokers=1, time_scale=TIME_SCALE, broker_config=CONFIG) as cluster,
        cluster.admin() as admin,
        cluster.producer("sensor") as producer,
    ):
        broker = cluster.brokers["broker-a"]
        await producer.send(Message("Readings", b"first"))
        queue = (await producer.fetch_publish_message_queues("Readings"))[0]
        for number in range(1_000):
            await producer.send(Message("Readings", b"reading %04d " % number * 10), queue=queue)
        log = broker.store_path / "commitlog"
        before = len(list(log.iterdir()))
        first, last = await admin.messages.min_offset(queue), await admin.messages.max_offset(queue)
        print(f"{before} files, offsets {first} to {last}")

        await admin.brokers.delete_expired_commit_log(broker.address)
        # The clean task runs after 60 s and then every 10 s, which are 1.2 s and 0.2 s here.
        await asyncio.sleep(100 * TIME_SCALE)
        assert len(list(log.iterdir())) == 1
        kept = await admin.messages.min_offset(queue)
        assert first < kept < last
        print(f"the newest file is left, offsets {kept} to {last}")

        assert await admin.messages.search_offset(queue, 0) == kept
        print(f"a reset to a time whose messages are deleted goes to {kept}")


if __name__ == "__main__":
    asyncio.run(main())
