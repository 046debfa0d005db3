"""What a reader of stores is asked for: the options of ``spark.read.format("rocketmq")``, understood once."""

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

# As spelled in the docs; Spark does not care for upper and lower case.
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
    """Options with their types.

    Attributes:
        locations: of the stores.
        selection: the rows that options ask for.
        batch_records: rows of an Arrow batch at most.
        split_bytes: of the log, what one task reads at most.
        index_folder: of a key index that a job made; "" for the store's own only, None for
            none at all.
        hash_slots: maxHashSlotNum of the index files, 0 to find out.
        use_consume_queues: whether consume queues may say where messages are.
        clock_slack_ms: how far the broker's clock may have been set back.
        counters: folder for what tasks read; "" for none.
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
    """
    Raises:
        PipelineError: an option or view there is none of, or a value that cannot be.
    """
    values = {name.lower(): value for name, value in given.items()}
    known = {name.lower() for name in OPTIONS}
    for name in given:
        if name.lower() not in known:
            raise PipelineError(f"unknown option {name!r}; there are {', '.join(OPTIONS)}")
    view = values.get("view", "messages")
    if view not in VIEWS:
        raise PipelineError(f"unknown view {view!r}; there are {', '.join(VIEWS)}")
    if view != "messages" and (foreign := sorted(_OF_MESSAGES & values.keys())):
        raise PipelineError(f"option {foreign[0]!r} is not for the view {view}: filter its rows")
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
    """
    Raises:
        PipelineError: the view has no such column, or no column is asked for.
    """
    for name in names:
        if name not in options.columns:
            raise PipelineError(
                f"unknown column {name!r} of the view {options.view}; there are {', '.join(options.columns)}"
            )


def _locations(values: Mapping[str, str]) -> tuple[str, ...]:
    if "path" in values:
        return (values["path"],)
    try:
        paths = json.loads(values.get("paths", "[]"))
    except ValueError:
        paths = None
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise PipelineError("option 'paths' is no JSON list of paths; give load() a list of them instead")
    if not paths:
        raise PipelineError("no store is named: give load() its path, or a list of paths")
    return tuple(paths)


def _selection(values: Mapping[str, str]) -> Selection:
    chosen = EVERYTHING
    if "topic" in values:
        chosen = chosen.of_topics(_pieces(values["topic"]))
    if "queueid" in values:
        pieces = _pieces(values["queueid"])
        if not all(piece.isdecimal() for piece in pieces):
            raise PipelineError(f"option queueId: {values['queueid']!r} is no list of numbers, as in 0,1")
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
        raise PipelineError(f"option {name}: {text!r} is no number of at least {least}")
    return int(text)


def _delay_levels(text: str) -> str:
    try:
        DelayLevels(text)
    except StoreError as error:
        raise PipelineError(f"option delayLevels: {error}") from None
    return text
