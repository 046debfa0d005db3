"""Remedy 2 of docs/remedies.md: reset the group's offsets to when the trouble began.

Nothing is needed but the moment. Everything from there on comes again, what had gone well too: without a look
at what was sent already, people get texts twice. A classic reset stops the group for 10 s besides; a fenced
one does not.
"""

from __future__ import annotations

import asyncio

from remedies.sms_service import GROUP, TIME_SCALE, TOPIC, Repair, SmsService, Traffic, break_down

from rewindmq import (
    AdminClient,
    LocalCluster,
    Producer,
    ResetMode,
)
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.runtime import system_runtime


async def repair(mode: ResetMode, profile: Profile) -> None:
    runtime = system_runtime(time_scale=TIME_SCALE)
    async with (
        LocalCluster(brokers=1, time_scale=TIME_SCALE) as cluster,
        Producer("sms-senders", cluster.namesrv_address, runtime=runtime) as producer,
        AdminClient(cluster.namesrv_address, runtime=runtime) as admin,
    ):
        service, traffic = SmsService(cluster.namesrv_address, runtime, profile), Traffic(producer, runtime)
        async with service.consumer:
            begin, _ = await break_down(service, traffic)
            if mode is ResetMode.CLASSIC:
                # Refused until the group has stored an offset in every queue.
                await runtime.timers.sleep(15)
            async with Repair(service, traffic) as repair:
                await admin.reset_offset_by_timestamp(TOPIC, GROUP, begin, mode=mode)
                while service.missing:
                    await runtime.timers.sleep(0.1)
        repair.show(f"reset, {mode}, clients {profile}", carried=service.carried, stored=0)


async def main() -> None:
    await repair(ResetMode.CLASSIC, Profile.V49)
    await repair(ResetMode.FENCED, Profile.EPOCH)


if __name__ == "__main__":
    asyncio.run(main())
