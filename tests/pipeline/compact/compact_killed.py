"""A process that compacts a store and kills itself on the way.

Usage: ``python -m tests.pipeline.compact.compact_killed STORE OUT FORMAT PLACE``.

PLACE: ``0-groups``, ``0-survivors``, ``0-layout``, ``0-files``, ``0-config``, ``manifest`` or
``tidy``, as ``die_at`` says.
"""

from __future__ import annotations

import sys

from rewindmq.pipeline.compact.job import compact
from rewindmq.pipeline.compact.options import CompactOptions, Format
from rewindmq.pipeline.spark.session import make_session
from tests.pipeline.killing import die_at
from tests.pipeline.sparks import SMALL_JOBS


def options(format_: Format) -> CompactOptions:
    return CompactOptions(format=format_, segment_bytes=8_192, log_file_bytes=4_096, cq_file_bytes=506)


def main(store: str, out: str, format_: str, place: str) -> None:
    die_at(place)
    spark = make_session("local[2]", memory="512m", config=SMALL_JOBS)
    compact(spark, store, out, options(Format(format_)))


if __name__ == "__main__":
    main(*sys.argv[1:])
