"""What a job writes: published in one step by a manifest, resumed after a kill, continued by a later run.

::

    OUT/manifest.json         what is published; replaced in one step
    OUT/current               on this machine's disks: a link to the published folder
    OUT/generation-3/         the published files; never changed
    OUT/staging/              of a run that goes on, or was interrupted
    OUT/staging/run.json      what that run does: with other options it begins afresh
    OUT/staging/<step>.json   a finished step, and what it found
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


class Manifest:
    """What is published.

    Attributes:
        job: "compact" or "index".
        generation: 1 for the first, one more for each later run.
        options: of the run; a run with others is another output.
        source: what was read: per store its location and the range of the log.
        facts: what the job found, for the next run and for ``verify``.
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
        """Name of the published folder."""
        return f"{_GENERATION}{self.generation}"

    def to_json(self) -> bytes:
        """The file's content."""
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
    """The manifest of an output; None when nothing is published there.

    Raises:
        PipelineError: there is one that this version cannot read.
    """
    path = f"{root}/{MANIFEST}"
    data = files.read_all(path)
    if data is None:
        return None
    try:
        table = json.loads(data)
        if table["format"] != FORMAT:
            raise PipelineError(f"{path} is of format {table['format']}; this version reads format {FORMAT}")
        return Manifest(table["job"], table["generation"], table["options"], table["source"], table["facts"])
    except (ValueError, KeyError, TypeError) as error:
        raise PipelineError(f"cannot read {path}: {error!r}") from None


class JobOutput:
    """The folder a job writes to.

    A job asks ``step(name)`` for the findings of a step that an interrupted run finished, does the step if
    there are none, and records it with ``finish``. Files of a step lie below ``staging/<name>/``; what shall
    be published below ``draft``. ``publish`` makes the draft the current generation.

    Attributes:
        published: what an earlier run published here; None on the first.
        draft: where the files to be published are written.
    """

    def __init__(self, location: str | Path, job: str, options: Mapping[str, Any]) -> None:
        """
        Args:
            options: what makes this output what it is: JSON values.

        Raises:
            PipelineError: something else is there, or the output of another job or of other options.
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
        # Object stores cannot rename a folder: it has its name from the start, and no manifest tells of it.
        self.draft = f"{self.root}/{_GENERATION}{self.next_generation}"

    def _check(self) -> None:
        entry = self.files.entry(self.root)
        if entry is not None and entry.is_file:
            raise PipelineError(f"the output {self.root} exists and is a file; choose another")
        if self.published is None:
            strange = [item.name for item in self.files.list(self.root) if item.name != _STAGING]
            if self.files.entry(f"{self.root}/{_STAGING}/{_RUN}") is not None:
                # An interrupted first run: no manifest tells of its folder yet.
                strange = [name for name in strange if name != f"{_GENERATION}1"]
            if strange:
                raise PipelineError(
                    f"the output {self.root} exists and holds other things ({strange[0]});"
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
                    f"{self.root} was made with {name} {before}, now it is {value}; choose another output"
                )

    def begin(self, source: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Begin the run, or go on with one that was interrupted.

        Args:
            source: what would be read now.

        Returns:
            What to read: ``source``, or what the interrupted run had begun to read. Reading the same prefix
            of the log again is what lets it use that run's finished steps.
        """
        run = self._read(_RUN)
        generation = self.next_generation
        if run is not None and run["options"] == self._options and run["generation"] == generation:
            places = [store["location"] for store in source]
            if [store["location"] for store in run["source"]] == places:
                return list(run["source"])
        self.discard()
        self._write(_RUN, {"options": self._options, "generation": generation, "source": source})
        return source

    def discard(self) -> None:
        """Forget an interrupted run; to be followed by ``begin``."""
        # Killed in between, its steps must not count, and what it wrote must be known as its own.
        self._write(_RUN, {"options": None, "generation": 0, "source": []})
        self.files.remove_tree(self.draft)
        self.files.remove_tree(self._staging)

    def settle(self) -> None:
        """Finish what a run left that was killed when its manifest was published already."""
        if self.published is None:
            return
        run = self._read(_RUN)
        if run is not None and run["generation"] > self.published.generation:
            self._point(self.published)
        else:
            self._tidy(self.published)

    def uri(self, path: str) -> str:
        """What Spark calls a path below ``root``."""
        assert path.startswith(f"{self.root}/"), path
        is_local = isinstance(self.files, LocalFiles)
        return f"file://{path}" if is_local else self._location + path[len(self.root) :]

    @property
    def next_generation(self) -> int:
        """Number of the generation this run makes."""
        return 1 if self.published is None else self.published.generation + 1

    def folder(self, step: str) -> str:
        """Where a step writes what only later steps read."""
        return f"{self._staging}/{step}"

    def step(self, name: str) -> Mapping[str, Any] | None:
        """What a finished step found; None: it has to be done, and what an interrupted one left is
        removed."""
        found = self._read(f"{name}.json")
        if found is None:
            self.files.remove_tree(self.folder(name))
        return found

    def finish(self, name: str, findings: Mapping[str, Any]) -> Mapping[str, Any]:
        """Record a step as done; gives the findings back as a later run will read them."""
        self._write(f"{name}.json", findings)
        return findings

    def published_folder(self) -> str:
        """Path of the files published by an earlier run."""
        assert self.published is not None
        return f"{self.root}/{self.published.folder}"

    def publish(self, source: list[dict[str, Any]], facts: Mapping[str, Any]) -> Manifest:
        """Make the draft the current generation and remove what came before it."""
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

    def _read(self, name: str) -> dict[str, Any] | None:
        data = self.files.read_all(f"{self._staging}/{name}")
        return None if data is None else json.loads(data)

    def _write(self, name: str, value: Mapping[str, Any]) -> None:
        self.files.publish(f"{self._staging}/{name}", _dump(value))


def _dump(value: Any) -> bytes:
    return json.dumps(value, indent=1, sort_keys=True).encode() + b"\n"
