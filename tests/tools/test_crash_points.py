"""A power failure after any write loses nothing that was promised, and the check finds seeded faults."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

import pytest

from tools.crash_points.__main__ import main
from tools.crash_points.image import DiskState, Image
from tools.crash_points.operations import (
    SECTOR_BYTES,
    FolderSynced,
    Named,
    Operation,
    Renamed,
    Rewritten,
    SectorWritten,
    Sized,
    Synced,
    Unlinked,
)
from tools.crash_points.recording import record
from tools.crash_points.running import Failure, replay, run
from tools.crash_points.workloads import WORKLOADS

ROOT: Final = Path("/store")
FILE: Final = ROOT / "file"
BY_NAME: Final = {workload.name: workload for workload in WORKLOADS}
# Power failures of one workload; CI has more than 2,000 in all, ``--full`` more than 100,000.
CI_POINTS: Final = 200
FULL_POINTS: Final = 9_200


def failures(
    name: str, points: int, is_dropped: Callable[[Operation], bool] = lambda _: False
) -> list[Failure]:
    """Cut the power during a workload, up to the first failure."""
    found: list[Failure] = []

    def on_cut(failure: Failure | None) -> bool:
        if failure is not None:
            found.append(failure)
        return not found

    run([record(BY_NAME[name], 1, is_dropped)], 1, points, on_cut)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", BY_NAME)
def test_a_power_failure_after_any_write_breaks_no_promise(name: str, full: bool) -> None:
    assert not failures(name, FULL_POINTS if full else CI_POINTS)


def test_a_power_failure_during_sends_loses_no_acknowledged_message() -> None:
    assert not failures("messages", 40)


def test_a_power_failure_during_retention_loses_no_message_that_has_not_expired() -> None:
    assert not failures("retention", 60)


@pytest.mark.parametrize("name", ["lives", "lives-async", "replication-lives"])
def test_a_power_failure_brings_no_deleted_topic_back(name: str) -> None:
    assert not failures(name, 40)


FAULTS: Final[dict[str, tuple[str, Callable[[Operation], bool]]]] = {
    "log not synced": ("messages", lambda done: isinstance(done, Synced) and "commitlog" in done.path.parts),
    "segment's name not synced": ("messages", lambda done: done == FolderSynced(ROOT / "commitlog")),
    "queue not synced": (
        "messages",
        lambda done: isinstance(done, Synced) and "consumequeue" in done.path.parts,
    ),
    "table's name not synced": ("tables", lambda done: done == FolderSynced(ROOT / "config")),
    "crash not marked": ("messages", lambda done: isinstance(done, Named) and done.path.name == "abort"),
}


# Faults that are found within some tens of power failures; the others take hundreds.
SOON_FOUND: Final = {"log not synced", "segment's name not synced", "table's name not synced"}


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(
            fault,
            marks=() if fault in SOON_FOUND else pytest.mark.slow,
        )
        for fault in FAULTS
    ],
)
def test_a_lost_sync_is_found_and_its_command_repeats_it(fault: str) -> None:
    name, is_dropped = FAULTS[fault]
    (failure,) = failures(name, 600, is_dropped)
    cut = failure.cut
    assert f"--replay {cut.point}:{cut.choice}" in cut.command
    again = replay(record(BY_NAME[name], 1, is_dropped), cut.seed, cut.point, cut.choice)
    assert again == failure


def test_the_command_counts_and_repeats(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--workload", "delays", "--points", "3"]) == 0
    assert "3 power failures" in capsys.readouterr().out
    assert main(["--workload", "delays", "--replay", "100:0"]) == 0
    assert "the law held" in capsys.readouterr().out


def test_the_command_refuses_a_replay_without_a_workload(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--replay", "1:0"])
    assert "--replay needs one --workload" in capsys.readouterr().err


# The model of the disk.


def outcomes(*operations: Operation) -> set[bytes | None]:
    """Return what may be left of ``FILE``; None: nothing."""
    state = DiskState(Image({}, {Path("/"), ROOT}))
    for operation in operations:
        state.apply(operation)
    found: set[bytes | None] = set()
    for seed in range(200):
        file = state.cut(Random(seed)).files.get(FILE)
        found.add(None if file is None else file.data)
    return found


CREATED: Final = (Named(FILE, 0, True), Sized(FILE, 0, 2 * SECTOR_BYTES))
DURABLE: Final = (*CREATED, Synced(FILE, 0), FolderSynced(ROOT))
ZEROS, ONES = bytes(SECTOR_BYTES), b"1" * SECTOR_BYTES
TWOS: Final = b"2" * SECTOR_BYTES


def test_a_name_is_durable_when_its_folder_is_synced() -> None:
    assert outcomes(*CREATED) == {None, b"", ZEROS * 2}
    assert outcomes(*CREATED, Synced(FILE, 0)) == {None, ZEROS * 2}
    assert outcomes(*DURABLE) == {ZEROS * 2}


def test_sectors_reach_the_disk_in_any_order_until_a_sync() -> None:
    written = (SectorWritten(FILE, 0, 0, ONES), SectorWritten(FILE, 0, 1, ONES))
    assert outcomes(*DURABLE, *written) == {ZEROS * 2, ONES + ZEROS, ZEROS + ONES, ONES * 2}
    assert outcomes(*DURABLE, *written, Synced(FILE, 0)) == {ONES * 2}


def test_a_sector_has_any_of_its_contents_since_the_sync() -> None:
    written = (SectorWritten(FILE, 0, 0, ONES), SectorWritten(FILE, 0, 0, TWOS))
    assert outcomes(*DURABLE, *written) == {first + ZEROS for first in (ZEROS, ONES, TWOS)}


def test_a_file_written_as_a_whole_may_be_torn() -> None:
    found = outcomes(Named(FILE, 0, False), FolderSynced(ROOT), Rewritten(FILE, 0, b"abc"))
    assert found == {b"", b"a", b"ab", b"abc", bytes(3)}


def test_a_rename_and_an_unlink_are_durable_when_the_folder_is_synced() -> None:
    other = ROOT / "other"
    assert outcomes(*DURABLE, Renamed(FILE, other)) == {None, ZEROS * 2}
    assert outcomes(*DURABLE, Renamed(FILE, other), FolderSynced(ROOT)) == {None}
    assert outcomes(*DURABLE, Unlinked(FILE)) == {None, ZEROS * 2}
    assert outcomes(*DURABLE, Unlinked(FILE), FolderSynced(ROOT)) == {None}
