"""Remedy 2 of docs/remedies.md: reset the group's offsets to the time at which the outage began.

The repair needs nothing but that time. All later messages are delivered again, even if their texts were sent:
unless the application checks what it has sent, people get texts twice. A classic reset also stops the group
for 10 s; a fenced reset does not.
"""

from __future__ import annotations

import asyncio

from remedies.sms_service import GROUP, TIME_SCALE, TOPIC, Repair, SmsService, Traffic, break_down

from rewindmq import (
    LocalCluster,
)


async def repair(mode: str, profile: str) -> None:
    async with (
        LocalCluster(brokers=1, time_scale=TIME_SCALE) as cluster,
        cluster.producer("sms-senders") as producer,
        cluster.admin() as admin,
    ):
        service, traffic = SmsService(cluster, profile), Traffic(producer)
        async with service.consumer:
            begin, _ = await break_down(service, traffic)
            if mode == "classic":
                # The broker refuses a classic reset until the group has stored an offset for every queue.
                await asyncio.sleep(15 * TIME_SCALE)
            async with Repair(service, traffic) as repair:
                await admin.resets.reset(TOPIC, GROUP, begin, mode=mode)
                while service.missing:
                    await asyncio.sleep(0.1 * TIME_SCALE)
        repair.show(f"reset, {mode}, clients {profile}", carried=service.carried, stored=0)


async def main() -> None:
    await repair("classic", "v49")
    await repair("fenced", "epoch")


if __name__ == "__main__":
    asyncio.run(main())
