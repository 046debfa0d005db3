"""The process of one simulated run: ``python -m rewindmq.dashboard.races.worker CASE``, the case as JSON.

It prints the run as JSON. When standard input ends, the process ends at once: so it never outlives a
dashboard that was killed.
"""

from __future__ import annotations

import os
import sys
import threading

import msgspec

from rewindmq.dashboard.races.race_run import BrokenLaw, RaceCase, RaceRun
from rewindmq.race.play.run import Plan, PlayOutcome, play_simulated
from rewindmq.race.report.drawing import Drawing
from rewindmq.race.report.meta import headline
from rewindmq.race.report.scene import make_scene


def main() -> int:
    """Play the case of the command line, print the run, and return the exit code."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    case = msgspec.json.decode(sys.argv[1], type=RaceCase)
    outcome = play_simulated(Plan(case.id, case.profile, case.mode), case.seed)
    sys.stdout.buffer.write(msgspec.json.encode(_run(outcome)))
    sys.stdout.buffer.flush()
    return 0


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(1)


def _run(outcome: PlayOutcome) -> RaceRun:
    scene = make_scene(outcome.history, outcome.verdict)
    return RaceRun(
        headline=headline(outcome.verdict),
        losses=sorted(outcome.verdict.losses),
        is_documented=outcome.is_documented,
        broken=[BrokenLaw(each.loss, each.at, each.text) for each in outcome.verdict.violations],
        queue=f"{scene.broker_name}/{scene.queue_id}" if scene.broker_name else "",
        drawing=Drawing(scene).html(),
        error=outcome.error,
    )


if __name__ == "__main__":
    # Without the interpreter's shutdown, which would wait for the thread that reads.
    code = main()
    sys.stdout.flush()
    os._exit(code)
