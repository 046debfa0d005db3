"""A process that indexes a store and kills itself on the way: ``index_killed.py STORE OUT PLACE``.

PLACE: ``scan``, ``queues``, ``index``, ``rest``, ``manifest`` or ``tidy``, as ``die_at`` says.
"""

from __future__ import annotations

import sys

from rewindmq.pipeline.index import scan
from rewindmq.pipeline.index.job import build_index
from rewindmq.pipeline.index.options import IndexOptions
from rewindmq.pipeline.spark.session import make_session
from tests.pipeline.killing import die_at
from tests.pipeline.sparks import SMALL_JOBS


def main(store: str, out: str, place: str) -> None:
    die_at(place)
    scan._PART_BYTES = 30_000  # type: ignore[misc]
    spark = make_session("local[2]", memory="512m", config=SMALL_JOBS)
    build_index(spark, store, out, IndexOptions(max_hash_slot_num=13, max_index_num=60))


if __name__ == "__main__":
    main(*sys.argv[1:])
