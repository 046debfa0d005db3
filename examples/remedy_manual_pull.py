"""Remedy 3 of docs/remedies.md: pull what was stored between two moments by hand, and handle just that.

The group goes on undisturbed, its offsets are not touched, and nothing comes that had gone well. Who pulls by
hand has to find the interval in every queue, and to remember how far he has come.
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
        # A group of its own: pulling in the name of the service's would mix with its offsets.
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
