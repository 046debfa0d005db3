"""What a compaction's manifest claims: its store, the range of the log, and the options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rewindmq.pipeline.files import LocalFiles, ReadableFiles, open_files
from rewindmq.pipeline.output.output import Manifest
from rewindmq.pipeline.snapshot.snapshot import StoreSnapshot


class Options(NamedTuple):
    """The options of a compaction, from its manifest.

    Attributes:
        is_store: whether the output is a new store with renumbered queues; else it is a compaction store.
        by_topic: whether a key has one newest message per topic, not per queue.
        chosen: the compacted topics; None: all user topics.
    """

    is_store: bool
    by_topic: bool
    keeps_keyless: bool
    grace_ms: int
    chosen: frozenset[str] | None


class Proof(NamedTuple):
    """One store, and the output of its compaction.

    Attributes:
        number: index of the store in the tally.
        source: the store, cut where the compaction ended.
        folder: path of the published files.
        uri: the same path, as a URI for Spark.
        is_settled: whether the store has no file ``abort``: no broker runs on it, so its offsets are taken
            to be those that the compaction read.
    """

    number: int
    options: Options
    source: StoreSnapshot
    folder: str
    uri: str
    output: ReadableFiles
    is_settled: bool


def read_options(manifest: Manifest, chosen: Sequence[str] | None) -> Options:
    """Return the options that a manifest records."""
    options = manifest.options
    is_store = options["format"] == "store"
    return Options(
        is_store,
        options["scope"] == "topic",
        is_store and options["keyless"] == "keep",
        options["tombstone_grace_ms"],
        None if chosen is None else frozenset(chosen),
    )


def prepare_proof(number: int, snapshot: StoreSnapshot, out: str, manifest: Manifest, part: int) -> Proof:
    """Collect what a proof needs about an output.

    Args:
        snapshot: the store, cut where the output's source ended.
        part: index of the store among the manifest's sources.
    """
    folder = manifest.facts["stores"][part]["folder"]
    files, root = open_files(out)
    path = f"{root}/{manifest.folder}{folder}"
    settled = snapshot.files.entry(f"{snapshot.root}/abort") is None
    uri = (
        f"file://{path}" if isinstance(files, LocalFiles) else f"{out.rstrip('/')}/{manifest.folder}{folder}"
    )
    options = read_options(manifest, manifest.source[part]["chosen"])
    return Proof(number, options, snapshot, path, uri, files, settled)
