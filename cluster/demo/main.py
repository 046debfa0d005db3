"""One run of the demonstration."""

from __future__ import annotations

from rewindmq.cluster.demo.display import Display
from rewindmq.cluster.demo.experiment import run_experiment
from rewindmq.cluster.demo.opening import open_stage
from rewindmq.cluster.demo.report import Report
from rewindmq.cluster.demo.stage import DemoOptions
from rewindmq.protocol.remoting.runtime import SystemClock


async def run_demo(options: DemoOptions) -> Report:
    """Run the experiment; nothing it started is left afterwards.

    Raises:
        RewindMQError: it could not go on.
    """
    display = Display()
    clock = SystemClock()
    started = clock.monotonic()
    report = Report(
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
