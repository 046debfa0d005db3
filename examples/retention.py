"""Old messages go, file by file; who asks for them is told where to go on, and so is a reset.

A broker keeps messages for 72 hours, and deletes at four in the morning. Here it keeps them for no time at
all once somebody asks for it.
"""

from __future__ import annotations

import asyncio

from rewindmq import (
    LocalCluster,
    Message,
)

TIME_SCALE = 0.02
CONFIG = {
    # Files of 64 KiB, where RocketMQ's have 1 GiB.
    "mappedFileSizeCommitLog": 65_536,
    "mappedFileSizeConsumeQueue": 2_000,
    # Hours that a file is kept; 72 unless one says otherwise.
    "fileReservedTime": 0,
    # An hour that never comes: only deleteExpiredCommitLog deletes.
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
        first, last = await admin.min_offset(queue), await admin.max_offset(queue)
        print(f"{before} files, offsets {first} to {last}")

        await admin.delete_expired_commit_log(broker.address)
        # The clean task runs after 60 s and then every 10 s, which are 1.2 s and 0.2 s here.
        await asyncio.sleep(100 * TIME_SCALE)
        assert len(list(log.iterdir())) == 1
        kept = await admin.min_offset(queue)
        assert first < kept < last
        print(f"the newest file is left, offsets {kept} to {last}")

        assert await admin.search_offset(queue, 0) == kept
        print(f"a reset to a time that is deleted goes to {kept}")


if __name__ == "__main__":
    asyncio.run(main())
