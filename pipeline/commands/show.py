"""``rewindmq pipeline show``: prints rows of a store as a table or as JSON lines."""

from __future__ import annotations

import argparse
import base64
import json
import shutil
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, Protocol

from rewindmq.pipeline.commands.checks import look_at_stores, require_topics
from rewindmq.pipeline.commands.common import (
    add_common_arguments,
    displayed,
    running,
    runs_locally,
)
from rewindmq.pipeline.commands.summary import in_words, table_lines
from rewindmq.pipeline.errors import PipelineError
from rewindmq.protocol.text import escape_json, escape_lines

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rewindmq.pipeline.spark.progress import ProgressDisplay

VIEWS: Final = ("messages", "consumequeue", "index", "offsets", "damage", "open_timers", "in_flight")
DEFAULT_LIMIT: Final = 20
# Columns that fit a line of a table; --json prints all.
_TABLE_COLUMNS: Final[tuple[str, ...]] = (
    "topic", "queueId", "queueOffset", "storeTimestamp", "keys", "tag", "uniqueKey", "storeSize", "body",
)  # fmt: skip
# The column that --count reads: the shortest one of each view.
_COUNTED_COLUMNS: Final[dict[str, tuple[str, ...]]] = {"messages": ("physicalOffset",)}
# Options of the data source to attributes of the arguments; "from" is a Python keyword, so not an attribute.
_FILTERS: Final = {"key": "key", "from": "begin", "to": "end", "index": "index"}
# Number of rows that set the column widths of a table.
_PAGE: Final = 1_000
_MAX_CELL: Final = 48

EPILOG: Final = """\
Views: messages (the commit log), consumequeue, index (the key index), offsets (of consumer groups), damage
(parts of the log that cannot be read), open_timers (timer messages that wait), in_flight (messages that a
group has popped and not acknowledged).

examples:
  rewindmq pipeline show ~/store
  rewindmq pipeline show ~/store --topic Orders --from 2026-03-01 --to 2026-03-02 --limit 0 --json
  rewindmq pipeline show ~/store --topic Orders --key order-4711 --index ~/indexed
  rewindmq pipeline show ~/broker-a ~/broker-b --topic Orders --count
  rewindmq pipeline show ~/store --view damage
  rewindmq pipeline show ~/store --view open_timers --topic Orders
  rewindmq pipeline show ~/store --view in_flight --limit 0 --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("stores", nargs="+", metavar="STORE", help="a store; several are read as one")
    parser.add_argument("--view", choices=VIEWS, default=VIEWS[0], help="view to print (default: messages)")
    parser.add_argument("--topic", metavar="T", help="only messages of this topic")
    parser.add_argument("--key", metavar="K", help="only messages with this key or unique key")
    parser.add_argument(
        "--index",
        metavar="DIR",
        help="output of 'rewindmq pipeline index', to find messages by key and topic",
    )
    parser.add_argument("--from", dest="begin", metavar="TIME", help="only messages stored from this time on")
    parser.add_argument("--to", dest="end", metavar="TIME", help="only messages stored before this time")
    parser.add_argument(
        "--limit",
        type=_count,
        default=DEFAULT_LIMIT,
        metavar="N",
        help="number of rows, 0 for all (default: 20)",
    )
    parser.add_argument("--count", action="store_true", help="print only the number of rows")
    add_common_arguments(parser, json_help="print each row as one line of JSON")


def run(arguments: argparse.Namespace) -> int:
    """Print the rows.

    Raises:
        PipelineError: there is no store, a time is invalid, or the topic or option is unknown to the view.
    """
    snapshots = look_at_stores(arguments.stores)
    options = _options(arguments)
    if arguments.topic is not None:
        require_topics(snapshots, [arguments.topic])
    if runs_locally(arguments, snapshots):
        with displayed(arguments) as display:
            _show(_local_rows(arguments, options), arguments, display)
        return 0
    with running(arguments, snapshots) as (spark, display):
        _show(_SparkRows(_frame(spark, arguments, options)), arguments, display)
    return 0


class _Rows(Protocol):
    """The rows, wherever they are read."""

    def count(self) -> int: ...

    def rows(self, limit: int = 0) -> Iterator[dict[str, Any]]: ...


class _SparkRows:
    def __init__(self, frame: DataFrame) -> None:
        self._frame = frame

    def count(self) -> int:
        return self._frame.count()

    def rows(self, limit: int = 0) -> Iterator[dict[str, Any]]:
        chosen = self._frame.limit(limit) if limit else self._frame
        return (row.asDict() for row in chosen.toLocalIterator())


def _show(rows: _Rows, arguments: argparse.Namespace, display: ProgressDisplay) -> None:
    display.begin(f"reading {', '.join(arguments.stores)}")
    if arguments.count:
        count = rows.count()
        display.end(is_done=True)
        print(json.dumps({"count": count}) if arguments.json else count)
        return
    pieces = _pieces(rows.rows(arguments.limit))
    first = next(pieces, [])
    # Rows and progress bars would overwrite each other.
    display.end(is_done=True)
    for piece in chain([first], pieces):
        _print(piece, is_json=arguments.json)


def _options(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the data source's options, checked before Spark starts."""
    from rewindmq.pipeline.options import parse_options
    from rewindmq.pipeline.schema import VIEWS as COLUMNS

    given = {name: getattr(arguments, attribute) for name, attribute in _FILTERS.items()}
    options = {name: value for name, value in given.items() if value is not None}
    if arguments.topic is not None:
        if arguments.view == VIEWS[0]:
            options["topic"] = arguments.topic
        elif "topic" not in COLUMNS[arguments.view]:
            raise PipelineError(f"--topic does not apply to the view {arguments.view}: it has no topics")
    parse_options({"view": arguments.view, "paths": json.dumps(arguments.stores), **options})
    return options


def _columns(arguments: argparse.Namespace) -> tuple[str, ...] | None:
    if arguments.count:
        return _COUNTED_COLUMNS.get(arguments.view)
    return _TABLE_COLUMNS if arguments.view == VIEWS[0] and not arguments.json else None


def _local_rows(arguments: argparse.Namespace, options: Mapping[str, str]) -> _Rows:
    from rewindmq.pipeline.engines.view_rows import ViewRows

    topic = None if "topic" in options else arguments.topic
    return ViewRows(
        arguments.stores, view=arguments.view, columns=_columns(arguments), topic=topic, options=options
    )


def _frame(spark: SparkSession, arguments: argparse.Namespace, options: Mapping[str, str]) -> DataFrame:
    from rewindmq.pipeline.reading import read_store

    columns = _columns(arguments)
    rows = read_store(spark, arguments.stores, view=arguments.view, columns=columns, **options)
    if arguments.topic is not None and "topic" not in options:
        rows = rows.where(rows.topic == arguments.topic)
    return rows


def _pieces(rows: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Yield pages of rows, so that this process never holds all of them."""
    while piece := list(islice(rows, _PAGE)):
        yield piece


def _print(rows: list[dict[str, Any]], *, is_json: bool) -> None:
    if is_json:
        for row in rows:
            print(escape_json(json.dumps(_as_json(row), ensure_ascii=False)))
        return
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    lines = table_lines([_cells(row) for row in rows], _text) if rows else ["no rows"]
    print(escape_lines(line[:width] for line in lines))


def _as_json(row: Mapping[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, bytes | bytearray):
            try:
                values[name] = value.decode()
            except UnicodeDecodeError:
                values[f"{name}Base64"] = base64.b64encode(value).decode()
        elif isinstance(value, dict):
            # The order of properties means nothing (docs/spec/store.md 3.4), and Spark does not keep it.
            values[name] = dict(sorted(value.items()))
        else:
            values[name] = _moment(value) if isinstance(value, datetime) else value
    return values


def _moment(value: datetime) -> str:
    """Return the local time with its zone."""
    return value.astimezone().isoformat(timespec="milliseconds")


def _cells(row: Mapping[str, Any]) -> dict[str, Any]:
    names = [name for name in _TABLE_COLUMNS if name in row] if "body" in row else list(row)
    return {name: _cell(row[name]) for name in names}


def _cell(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S.") + f"{value.microsecond // 1_000:03}"
    if isinstance(value, bytes | bytearray):
        value = value[: 4 * _MAX_CELL].decode("utf-8", "replace")
    if isinstance(value, list):
        value = " ".join(map(str, value))
    if isinstance(value, dict):
        value = " ".join(f"{name}={item}" for name, item in value.items())
    if isinstance(value, str):
        value = "".join(character if character.isprintable() else "·" for character in value)
        return value if len(value) <= _MAX_CELL else f"{value[: _MAX_CELL - 3]}..."
    return value


def _text(value: Any) -> str:
    """Return a number without thousands separators, so that it can be copied into a command."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else in_words(value)


def _count(text: str) -> int:
    """Parse a whole number, 0 or more."""
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{number} is less than 0")
    return number
