"""The output folder of a job: published atomically by a manifest, resumed after a kill, continued later.

::

    OUT/manifest.json         describes the published files; replaced atomically
    OUT/current               on local disks: a link to the published folder
    OUT/generation-3/         the published files; never changed
    OUT/staging/              files of a running or interrupted run
    OUT/staging/run.json      options of that run: with other options it starts over
    OUT/staging/<step>.json   a finished step and its findings
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.files import LocalFiles, ReadableFiles, open_files

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
CURRENT: Final = "current"
_STAGING: Final = "staging"
_GENERATION: Final = "generation-"
_RUN: Final = "run.json"
# Ends the sentence about a file of an output.
DAMAGED: Final = "it is damaged: run the job again with a new output"


class Manifest:
    """Describes the published files.

    Attributes:
        job: "compact" or "index".
        generation: 1 for the first run; each later run adds 1.
        options: options of the run; a run with other options needs another output.
        source: for each store, its location and the range of the log that was read.
        facts: findings of the job, for the next run and for ``verify``.
    """

    def __init__(
        self,
        job: str,
        generation: int,
        options: Mapping[str, Any],
        source: list[dict[str, Any]],
        facts: Mapping[str, Any],
    ) -> None:
        self.job = job
        self.generation = generation
        self.options = dict(options)
        self.source = source
        self.facts = dict(facts)

    @property
    def folder(self) -> str:
        """Name of the folder with the published files."""
        return f"{_GENERATION}{self.generation}"

    def to_json(self) -> bytes:
        """Return the content of the manifest file."""
        return _dump(
            {
                "format": FORMAT,
                "job": self.job,
                "generation": self.generation,
                "folder": self.folder,
                "options": self.options,
                "source": self.source,
                "facts": self.facts,
            }
        )


def read_manifest(files: ReadableFiles, root: str) -> Manifest | None:
    """Return the manifest of an output; None if nothing is published there.

    Raises:
        PipelineError: this version cannot read the manifest.
    """
    path = f"{root}/{MANIFEST}"
    data = files.read_all(path)
    if data is None:
        return None
    table = parse_table(data, path)
    try:
        if table["format"] != FORMAT:
            raise PipelineError(f"{path} has format {table['format']}; this version reads format {FORMAT}")
        return Manifest(table["job"], table["generation"], table["options"], table["source"], table["facts"])
    except (ValueError, KeyError, TypeError) as error:
        raise PipelineError(f"cannot read {path}: {error!r}; {DAMAGED}") from None


def parse_table(data: bytes, path: str) -> dict[str, Any]:
    """Return the JSON object of a file.

    Raises:
        PipelineError: the file is damaged.
    """
    try:
        table = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise PipelineError(f"cannot read {path}: {error!r}; {DAMAGED}") from None
    if not isinstance(table, dict):
        raise PipelineError(f"cannot read {path}: it is no JSON object; {DAMAGED}")
    return table


class JobOutput:
    """The output folder of a job.

    A job asks ``step(name)`` for the findings of a step that an interrupted run finished. If there are none,
    it does the step and records it with ``finish``. Files of a step are below ``staging/<name>/``; files to
    publish are below ``draft``. ``publish`` makes the draft the current generation.

    Attributes:
        published: manifest of an earlier run; None on the first run.
        draft: folder for the files to publish.
    """

    def __init__(self, location: str | Path, job: str, options: Mapping[str, Any]) -> None:
        """
        Args:
            options: options that define this output; JSON values.

        Raises:
            PipelineError: the folder holds other data, or the output of another job or of other options.
        """
        self.files, self.root = open_files(location)
        self.job = job
        self._options = dict(options)
        try:
            self.published = read_manifest(self.files, self.root)
            self._check()
        except OSError as error:
            raise PipelineError(
                f"cannot use {error.filename or self.root}: {error.strerror or error}"
            ) from None
        self._location = os.fspath(location).rstrip("/")
        self._staging = f"{self.root}/{_STAGING}"
        # Object stores cannot rename a folder: the draft has its final name, and no manifest names it yet.
        self.draft = f"{self.root}/{_GENERATION}{self.next_generation}"

    def _check(self) -> None:
        entry = self.files.entry(self.root)
        if entry is not None and entry.is_file:
            raise PipelineError(f"the output {self.root} exists and is a file; choose another")
        if self.published is None:
            strange = [item.name for item in self.files.list(self.root) if item.name != _STAGING]
            if self.files.entry(f"{self.root}/{_STAGING}/{_RUN}") is not None:
                # An interrupted first run: no manifest names its folder yet.
                strange = [name for name in strange if name != f"{_GENERATION}1"]
            if strange:
                raise PipelineError(
                    f"the output {self.root} exists and holds other files ({strange[0]});"
                    " choose an empty or new one"
                )
            return
        if self.published.job != self.job:
            raise PipelineError(
                f"{self.root} is the output of {self.published.job}; choose another for {self.job}"
            )
        for name, value in self._options.items():
            before = self.published.options.get(name)
            if before != value:
                raise PipelineError(
                    f"{self.root} was made with {name} {before}, not {value}; choose another output"
                )

    def begin(self, source: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Begin a run, or resume an interrupted one.

        Args:
            source: the source that a new run would read.

        Returns:
            The source to read: ``source``, or that of the interrupted run, whose finished steps are valid
                only for the same part of the log.
        """
        run = self._read_run()
        generation = self.next_generation
        if run is not None and run["options"] == self._options and run["generation"] == generation:
            places = [store["location"] for store in source]
            if [store["location"] for store in run["source"]] == places:
                return list(run["source"])
        self.discard()
        self._write(_RUN, {"options": self._options, "generation": generation, "source": source})
        return source

    def discard(self) -> None:
        """Discard an interrupted run; call ``begin`` next."""
        # A kill may interrupt this. The next run must then ignore the old steps, and still recognise the
        # folder as its own output by this file.
        self._write(_RUN, {"options": None, "generation": 0, "source": []})
        self.files.remove_tree(self.draft)
        self.files.remove_tree(self._staging)

    def settle(self) -> None:
        """Finish the work of a run that was killed after it had published its manifest."""
        if self.published is None:
            return
        run = self._read_run()
        if run is not None and run["generation"] > self.published.generation:
            self._point(self.published)
        else:
            self._tidy(self.published)

    def uri(self, path: str) -> str:
        """Return the URI of a path below ``root`` for Spark."""
        assert path.startswith(f"{self.root}/"), path
        is_local = isinstance(self.files, LocalFiles)
        return f"file://{path}" if is_local else self._location + path[len(self.root) :]

    @property
    def next_generation(self) -> int:
        """Number of the generation that this run makes."""
        return 1 if self.published is None else self.published.generation + 1

    def folder(self, step: str) -> str:
        """Return the folder for files of a step that only later steps read."""
        return f"{self._staging}/{step}"

    def step(self, name: str) -> Mapping[str, Any] | None:
        """Return the findings of a finished step.

        None if the step is not finished; its leftovers from an interrupted run are removed.
        """
        found = self._read(f"{name}.json")
        if found is None:
            self.files.remove_tree(self.folder(name))
        return found

    def finish(self, name: str, findings: Mapping[str, Any]) -> Mapping[str, Any]:
        """Record a step as finished; return the findings as a later run reads them."""
        self._write(f"{name}.json", findings)
        return findings

    def published_folder(self) -> str:
        """Return the path of the files that an earlier run published."""
        assert self.published is not None
        return f"{self.root}/{self.published.folder}"

    def publish(self, source: list[dict[str, Any]], facts: Mapping[str, Any]) -> Manifest:
        """Make the draft the current generation and remove the one before."""
        manifest = Manifest(self.job, self.next_generation, self._options, source, facts)
        assert self.draft.endswith(f"/{manifest.folder}"), self.draft
        self.files.publish(f"{self.root}/{MANIFEST}", manifest.to_json())
        self._tidy(manifest)
        return manifest

    def _tidy(self, manifest: Manifest) -> None:
        self._point(manifest)
        for item in self.files.list(self.root):
            if item.name.startswith(_GENERATION) and item.name != manifest.folder:
                self.files.remove_tree(f"{self.root}/{item.name}")
        self.files.remove_tree(self._staging)
        self.published = manifest

    def _point(self, manifest: Manifest) -> None:
        if isinstance(self.files, LocalFiles):
            self.files.point(f"{self.root}/{CURRENT}", manifest.folder)

    def _read_run(self) -> dict[str, Any] | None:
        """Return what the last run began with; None if it finished, or there was none."""
        run = self._read(_RUN)
        if run is not None and not run.keys() >= {"options", "generation", "source"}:
            raise PipelineError(f"cannot read {self._staging}/{_RUN}: {DAMAGED}")
        return run

    def _read(self, name: str) -> dict[str, Any] | None:
        path = f"{self._staging}/{name}"
        data = self.files.read_all(path)
        return None if data is None else parse_table(data, path)

    def _write(self, name: str, value: Mapping[str, Any]) -> None:
        self.files.publish(f"{self._staging}/{name}", _dump(value))


def _dump(value: Any) -> bytes:
    return json.dumps(value, indent=1, sort_keys=True).encode() + b"\n"
