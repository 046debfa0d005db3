"""What a compaction claims: which store it was made from, how far, and with which options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rewindmq.pipeline.files import LocalFiles, ReadableFiles, open_files
from rewindmq.pipeline.output.output import Manifest
from rewindmq.pipeline.snapshot.snapshot import StoreSnapshot


class Options(NamedTuple):
    """How the compaction was asked for, as its manifest says.

    Attributes:
        is_store: a fresh store, with queues numbered anew; else a compaction store.
        by_topic: a key has one newest message in its topic, not in each queue.
        chosen: the compacted topics; None: all of applications.
    """

    is_store: bool
    by_topic: bool
    keeps_keyless: bool
    grace_ms: int
    chosen: frozenset[str] | None


class Proof(NamedTuple):
    """One store and what a compaction made of it.

    Attributes:
        number: of the store, in the tally.
        source: cut where the compaction ended.
        folder: path of the published files.
        uri: the same as Spark reads it.
        is_settled: the store was stopped cleanly, so its configuration is that of the compaction.
    """

    number: int
    options: Options
    source: StoreSnapshot
    folder: str
    uri: str
    output: ReadableFiles
    is_settled: bool


def read_options(manifest: Manifest, chosen: Sequence[str] | None) -> Options:
    """The options a manifest records."""
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
    """Look at an output.

    Args:
        snapshot: the store, up to where the output was made from.
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
