"""A process that compacts a store and kills itself on the way.

Usage: ``python -m tests.pipeline.compact.compact_killed STORE OUT FORMAT PLACE ENGINE``.

PLACE: ``0-groups``, ``0-survivors``, ``0-layout``, ``0-files``, ``0-config``, ``manifest``, ``tidy`` or
``parquet``, as ``die_at`` says. ENGINE: ``local`` or ``spark``.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rewindmq.pipeline.compact.job import compact
from rewindmq.pipeline.compact.options import CompactOptions, Format
from rewindmq.pipeline.engines.local_engine import LocalEngine
from rewindmq.pipeline.spark.session import make_session
from tests.pipeline.killing import die_at
from tests.pipeline.sparks import SMALL_JOBS

if TYPE_CHECKING:
    from rewindmq.pipeline.engines.runner import Runner


def options(format_: Format) -> CompactOptions:
    return CompactOptions(format=format_, segment_bytes=8_192, log_file_bytes=4_096, cq_file_bytes=506)


def main(store: str, out: str, format_: str, place: str, engine: str) -> None:
    die_at(place)
    runner: Runner
    if engine == "local":
        runner = LocalEngine()
    else:
        runner = make_session("local[2]", memory="512m", config=SMALL_JOBS)
    compact(runner, store, out, options(Format(format_)))


if __name__ == "__main__":
    main(*sys.argv[1:])
