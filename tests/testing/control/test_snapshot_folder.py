"""The control port's folder of snapshots, while another process changes it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Self

from rewindmq.testing.control.snapshot_folder import SnapshotFolder


class ChangingFolder(type(Path())):  # type: ignore[misc]
    """A folder in which another process deletes files right after they were listed."""

    def iterdir(self) -> Iterator[Self]:
        for path in list(super().iterdir()):
            if path.name.startswith("gone"):
                path.unlink()
            yield path


def test_a_file_that_is_deleted_while_the_folder_is_listed_is_left_out(tmp_path: Path) -> None:
    for name in ("gone.tar", "kept.tar"):
        (tmp_path / name).write_bytes(b"")
    assert SnapshotFolder(ChangingFolder(tmp_path)).names() == ["kept.tar"]


def test_a_folder_that_does_not_exist_has_no_files(tmp_path: Path) -> None:
    assert SnapshotFolder(tmp_path / "none").names() == []
