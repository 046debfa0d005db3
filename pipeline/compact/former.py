"""The previous generation of an output, from which a run continues if it is unchanged."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

import msgspec

from rewindmq.pipeline.compact.layout import OFFSET_MAP, OutputFile
from rewindmq.pipeline.compact.scan import SHARED
from rewindmq.pipeline.compact.topics import TopicRules, Treatment
from rewindmq.pipeline.compact.writer import log_path
from rewindmq.pipeline.engines.engine import Engine, Rows
from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.files import Files, LocalFiles
from rewindmq.pipeline.output.output import DAMAGED
from rewindmq.protocol.command import DECODE_FAILURES
from rewindmq.protocol.names import SCHEDULE_TOPIC

# Files in a store's folder that brokers ignore.
_FOLDER: Final = "pipeline"
_FILES: Final = "files.json"


def offset_map_path(root: str) -> str:
    """Return the path of a generation's offset map: for each message its old and its new place."""
    return f"{root}/{_FOLDER}/offsetMap/{OFFSET_MAP}"


def save_files(files: Files, root: str, written: Iterable[OutputFile]) -> None:
    """Record the log files of a generation."""
    files.publish(f"{root}/{_FOLDER}/{_FILES}", json.dumps([list(file) for file in written]).encode())


def load_files(files: Files, root: str) -> list[OutputFile]:
    """Return the recorded log files of a generation.

    Raises:
        PipelineError: the record is damaged.
    """
    path = f"{root}/{_FOLDER}/{_FILES}"
    data = files.read_all(path)
    try:
        return [] if data is None else msgspec.json.decode(data, type=list[OutputFile])
    except DECODE_FAILURES as error:
        raise PipelineError(f"cannot read {path}: {error}; {DAMAGED}") from None


def is_as_published(files: Files, root: str, file_bytes: int) -> bool:
    """Whether the log files of a generation are unchanged.

    A broker that ran on them has appended to the files or removed some. On local disks the mtimes show it:
    each must still be the one that the job set (``OutputFile.store_timestamp``).
    """
    if files.entry(offset_map_path(root)) is None:
        return False
    for file in load_files(files, root):
        entry = files.entry(log_path(root, file.stream, file.base))
        if entry is None or entry.size != file_bytes:
            return False
        if isinstance(files, LocalFiles) and entry.mtime_ms != file.store_timestamp:
            return False
    return True


def carried_rows(engine: Engine, offset_map: Rows, rules: TopicRules) -> Rows:
    """Return a generation's messages as rows of ``scan.SCHEMA``."""
    levels = " OR ".join(
        f"(queueId = {level - 1} AND queueOffset < {offset})" for level, offset in rules.delay_offsets.items()
    )
    is_delivered = f"topic = '{SCHEDULE_TOPIC}' AND kind = {Treatment.WHOLE:d} AND ({levels or 'FALSE'})"
    text = f"""
        WITH messages AS (
            SELECT *, CASE WHEN {is_delivered} THEN {Treatment.DONE:d} ELSE kind END AS kindNow
            FROM {{offset_map}}
        )
        SELECT topic, queueId, kindNow AS kind, CASE WHEN kindNow = {Treatment.KEYED:d} THEN key END AS key,
            CAST(
                CASE WHEN kindNow IN ({Treatment.KEYED:d}, {Treatment.DONE:d}) THEN {SHARED}
                    ELSE physicalOffset END
                AS BIGINT
            ) AS alone,
            queueOffset, physicalOffset,
            2 * CAST(storeSize AS BIGINT) + CASE WHEN hasBody THEN 0 ELSE 1 END AS packed,
            storeTimestamp, newPhysicalOffset AS origin
        FROM messages
    """
    return engine.query(text, offset_map=offset_map)
