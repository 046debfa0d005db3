"""Remedy 3 of docs/remedies.md: pull only the messages stored between two times, and handle them again.

The group continues and its offsets do not change. No message from outside the interval is handled again.
``replay`` finds the interval in every queue; the application stores its own progress.
"""

from __future__ import annotations

import asyncio

from remedies.sms_service import (
    LOST,
    TIME_SCALE,
    TOPIC,
    Repair,
    SmsService,
    Traffic,
    break_down,
    number_of,
)

from rewindmq import (
    LocalCluster,
)


async def main() -> None:
    async with (
        LocalCluster(brokers=1, time_scale=TIME_SCALE) as cluster,
        cluster.producer("sms-senders") as producer,
        # A group of its own, because pulls of the service's group would change that group's offsets.
        cluster.pull_consumer("sms-repair") as reader,
    ):
        service, traffic = SmsService(cluster), Traffic(producer)
        async with service.consumer:
            begin, end = await break_down(service, traffic)
            carried = count = 0
            async with Repair(service, traffic) as repair:
                async for message in reader.replay(TOPIC, begin, end):
                    service.handle(number_of(message.body))
                    carried += message.store_size
                    count += 1
        assert count == LOST
        repair.show("manual pull", carried=carried, stored=0)


if __name__ == "__main__":
    asyncio.run(main())
