"""Lets the process that runs a job kill itself at a named place on the way."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rewindmq.pipeline.files import LocalFiles
from rewindmq.pipeline.output.output import JobOutput, Manifest


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_at(place: str) -> None:
    """Arrange for it.

    Args:
        place: name of a step (it is done, but not yet recorded), ``manifest`` (the new files are in place,
            the manifest is not), ``tidy`` (the manifest is new, the link and the old files are not) or
            ``parquet`` (half of the local engine's first Parquet file is written).
    """
    finish, publish, tidy = JobOutput.finish, LocalFiles.publish, JobOutput._tidy
    replace = Path.replace

    def finish_unless_last(output: JobOutput, name: str, findings: Mapping[str, Any]) -> Mapping[str, Any]:
        if name == place:
            _die()
        return finish(output, name, findings)

    def publish_unless_manifest(files: LocalFiles, path: str, data: bytes) -> None:
        if place == "manifest" and path.endswith("/manifest.json"):
            _die()
        publish(files, path, data)

    def tidy_unless_new(output: JobOutput, manifest: Manifest) -> None:
        # An earlier run's publication is settled with its own manifest.
        if place == "tidy" and manifest is not output.published:
            _die()
        tidy(output, manifest)

    def replace_unless_parquet(draft: Path, target: str | Path) -> Path:
        if place == "parquet" and str(target).endswith(".parquet"):
            os.truncate(draft, draft.stat().st_size // 2)
            _die()
        return replace(draft, target)

    JobOutput.finish = finish_unless_last  # type: ignore[method-assign, assignment]
    LocalFiles.publish = publish_unless_manifest  # type: ignore[method-assign, assignment]
    JobOutput._tidy = tidy_unless_new  # type: ignore[method-assign, assignment]
    Path.replace = replace_unless_parquet  # type: ignore[method-assign, assignment]
