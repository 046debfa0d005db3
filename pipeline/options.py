"""Parses and checks the options of ``spark.read.format("rocketmq")``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from rewindmq.broker.store.config import DEFAULT_DELAY_LEVELS
from rewindmq.broker.store.consume_queue.tags_code import DelayLevels
from rewindmq.broker.store.errors import StoreError
from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.moment import parse_duration, parse_moment
from rewindmq.pipeline.schema import VIEWS, Column
from rewindmq.pipeline.selection import EVERYTHING, Selection

# As the docs spell them; Spark ignores case.
OPTIONS: Final = (
    "view", "path", "paths", "decompress", "delayLevels", "batchRecords", "splitBytes", "topic", "queueId",
    "from", "to", "key", "index", "hashSlots", "useConsumeQueues", "clockSlack", "counters",
)  # fmt: skip
_OF_MESSAGES: Final = frozenset({"topic", "queueid", "from", "to", "key"})
_BATCH_RECORDS: Final = 20_000
_SPLIT_BYTES: Final = 64 << 20
_CLOCK_SLACK: Final = "5s"
_TRUTH: Final = {"true": True, "false": False}


class ReadOptions(NamedTuple):
    """The parsed options.

    Attributes:
        locations: paths or URIs of the stores.
        selection: the messages that the options select.
        batch_records: maximum rows of an Arrow batch.
        split_bytes: maximum bytes of log that one task reads.
        index_folder: folder of an index that ``rewindmq pipeline index`` built; "" for the store's own
            index only, None for no index.
        hash_slots: maxHashSlotNum of the index files; 0 to detect it.
        use_consume_queues: whether consume queues may be used to locate messages.
        clock_slack_ms: how far the broker's clock may have gone back, in ms.
        counters: folder for the counters of tasks; "" for none.
    """

    view: str
    locations: tuple[str, ...]
    decompress: bool
    delay_levels: str
    batch_records: int
    split_bytes: int
    selection: Selection
    index_folder: str | None
    hash_slots: int
    use_consume_queues: bool
    clock_slack_ms: int
    counters: str

    @property
    def columns(self) -> Mapping[str, Column]:
        """The view's columns."""
        return VIEWS[self.view]


def parse_options(given: Mapping[str, str]) -> ReadOptions:
    """Parse the options that Spark passes.

    Raises:
        PipelineError: an option or view is unknown, or a value is invalid.
    """
    values = {name.lower(): value for name, value in given.items()}
    known = {name.lower() for name in OPTIONS}
    for name in given:
        if name.lower() not in known:
            raise PipelineError(f"unknown option {name!r}; known: {', '.join(OPTIONS)}")
    view = values.get("view", "messages")
    if view not in VIEWS:
        raise PipelineError(f"unknown view {view!r}; known: {', '.join(VIEWS)}")
    if view != "messages" and (foreign := sorted(_OF_MESSAGES & values.keys())):
        raise PipelineError(f"option {foreign[0]!r} does not apply to the view {view}: filter its rows")
    index = values.get("index", "")
    return ReadOptions(
        view=view,
        locations=_locations(values),
        decompress=_truth(values, "decompress", default=False),
        delay_levels=_delay_levels(values.get("delaylevels", DEFAULT_DELAY_LEVELS)),
        batch_records=_number(values, "batchRecords", _BATCH_RECORDS, 1),
        split_bytes=_number(values, "splitBytes", _SPLIT_BYTES, 1),
        selection=_selection(values),
        index_folder=None if index == "false" else index,
        hash_slots=_number(values, "hashSlots", 0, 0),
        use_consume_queues=_truth(values, "useConsumeQueues", default=True),
        clock_slack_ms=parse_duration(values.get("clockslack", _CLOCK_SLACK)),
        counters=values.get("counters", ""),
    )


def check_columns(options: ReadOptions, names: Sequence[str]) -> None:
    """Check the columns that the caller selects.

    Raises:
        PipelineError: the view lacks a column, or the selection is empty.
    """
    for name in names:
        if name not in options.columns:
            raise PipelineError(
                f"unknown column {name!r} of the view {options.view}; known: {', '.join(options.columns)}"
            )


def _locations(values: Mapping[str, str]) -> tuple[str, ...]:
    if "path" in values:
        return (values["path"],)
    try:
        paths = json.loads(values.get("paths", "[]"))
    except ValueError:
        paths = None
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise PipelineError("option 'paths' is not a JSON list of paths; pass a list to load() instead")
    if not paths:
        raise PipelineError("no store given: pass its path, or a list of paths, to load()")
    return tuple(paths)


def _selection(values: Mapping[str, str]) -> Selection:
    chosen = EVERYTHING
    if "topic" in values:
        chosen = chosen.of_topics(_pieces(values["topic"]))
    if "queueid" in values:
        pieces = _pieces(values["queueid"])
        if not all(piece.isdecimal() for piece in pieces):
            raise PipelineError(f"option queueId: {values['queueid']!r} is not a list of numbers, as in 0,1")
        chosen = chosen.of_queues(int(piece) for piece in pieces)
    if "from" in values:
        chosen = chosen.stored_from(parse_moment(values["from"]))
    if "to" in values:
        chosen = chosen.stored_to(parse_moment(values["to"]) - 1)
    if "key" in values:
        chosen = chosen.with_keys([values["key"]])
    return chosen


def _pieces(text: str) -> list[str]:
    return [piece.strip() for piece in text.split(",") if piece.strip()]


def _truth(values: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = values.get(name.lower())
    if text is None:
        return default
    if text.lower() not in _TRUTH:
        raise PipelineError(f"option {name}: {text!r} is neither true nor false")
    return _TRUTH[text.lower()]


def _number(values: Mapping[str, str], name: str, default: int, least: int) -> int:
    text = values.get(name.lower())
    if text is None:
        return default
    if not text.isdecimal() or int(text) < least:
        raise PipelineError(f"option {name}: {text!r} is not a number of at least {least}")
    return int(text)


def _delay_levels(text: str) -> str:
    try:
        DelayLevels(text)
    except StoreError as error:
        raise PipelineError(f"option delayLevels: {error}") from None
    return text
