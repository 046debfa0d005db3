"""One run of the demo."""

from __future__ import annotations

import asyncio

from rewindmq.cluster.demo.display import Display
from rewindmq.cluster.demo.experiment import run_experiment
from rewindmq.cluster.demo.opening import open_stage
from rewindmq.cluster.demo.report import DemoReport
from rewindmq.cluster.demo.stage import DemoOptions
from rewindmq.cluster.signals import stop_signals
from rewindmq.protocol.remoting.runtime import SystemClock


async def run_until_stopped(options: DemoOptions) -> DemoReport | None:
    """Run the demo; return None if a stop signal cancelled it. A second signal does not stop the clean-up.

    Raises:
        RewindMQError: the experiment failed before its end.
    """
    demo = asyncio.create_task(run_demo(options))

    def stop() -> None:
        if not demo.cancelling():
            demo.cancel()

    loop = asyncio.get_running_loop()
    for number in stop_signals():
        loop.add_signal_handler(number, stop)
    await asyncio.wait((demo,))
    return None if demo.cancelled() else demo.result()


async def run_demo(options: DemoOptions) -> DemoReport:
    """Run the experiment and stop every process that it started.

    Raises:
        RewindMQError: the experiment failed before its end.
    """
    display = Display()
    clock = SystemClock()
    started = clock.monotonic()
    report = DemoReport(
        {
            "messages": options.messages,
            "timeScale": options.time_scale,
            "profile": str(options.profile),
        }
    )
    async with open_stage(options, display, report) as stage:
        await run_experiment(stage)
    report.seconds = clock.monotonic() - started
    return report
