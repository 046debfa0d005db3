"""Opens a job's output by its manifest, and compares it with its store."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from rewindmq.pipeline.engines.runner import engine_of
from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.files import open_files
from rewindmq.pipeline.output.output import Manifest, read_manifest
from rewindmq.pipeline.snapshot.snapshot import StoreSnapshot
from rewindmq.pipeline.verify.report import OF_AN_INDEX, OUTPUT, Check, Tally

if TYPE_CHECKING:
    from rewindmq.pipeline.engines.runner import Runner

JOBS: Final = ("compact", "index")


class Output(NamedTuple):
    """A published output, and the store that it is compared with.

    Attributes:
        part: index of the store among the stores that the output was made from.
    """

    snapshot: StoreSnapshot
    location: str
    manifest: Manifest
    part: int

    def check(self, runner: Runner) -> tuple[Check, ...]:
        """Compare the output with the store.

        Raises:
            PipelineError: the store's log no longer has the part that the output was made from.
        """
        tally = Tally()
        if self.manifest.job == "index":
            from rewindmq.pipeline.verify.index_proof import prove_index

            prove_index(engine_of(runner), self.log(), self.location, self.manifest, tally)
            return tuple(
                replace(check, name=f"{OUTPUT}{check.name}")
                for check in tally.checks(0)
                if check.name in OF_AN_INDEX
            )
        from rewindmq.pipeline.verify.claim import prepare_proof
        from rewindmq.pipeline.verify.proof import prove

        prove(engine_of(runner), prepare_proof(0, self.log(), self.location, self.manifest, self.part), tally)
        return tally.checks(0)

    def log(self) -> StoreSnapshot:
        """Return the store, cut where the output's source ended.

        Raises:
            PipelineError: its log no longer has that part.
        """
        end = self.manifest.source[self.part]["end"]
        snapshot = self.snapshot
        if not snapshot.begin <= end <= snapshot.end:
            raise PipelineError(
                f"{self.location} was made from {snapshot.location} up to {end}, but the log is now"
                f" [{snapshot.begin}, {snapshot.end}]"
            )
        return snapshot.cut(end)


def open_output(snapshot: StoreSnapshot, out: str | Path) -> Output:
    """Open an output.

    Raises:
        PipelineError: there is no output, or it was not made from this store.
    """
    files, root = open_files(out)
    manifest = read_manifest(files, root)
    if manifest is None:
        raise PipelineError(f"{root} is not the output of a job: it contains no manifest.json")
    if manifest.job not in JOBS:
        raise PipelineError(f"{root} is the output of {manifest.job}; verify checks {', '.join(JOBS)}")
    for part, source in enumerate(manifest.source):
        if open_files(source["location"])[1] == snapshot.root:
            return Output(snapshot, str(out), manifest, part)
    places = ", ".join(source["location"] for source in manifest.source)
    raise PipelineError(f"{root} was made from {places}, not from {snapshot.root}")
