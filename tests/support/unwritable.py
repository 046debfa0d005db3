"""Files and file systems that refuse writes, also through a mapping that is there already."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

_GET_FLAGS: Final = 0x80086601
_SET_FLAGS: Final = 0x40086602
_IMMUTABLE: Final = 0x10
_FLAGS: Final = struct.Struct("@l")
_NO_FLAG: Final = (errno.EPERM, errno.ENOTTY, errno.EOPNOTSUPP)


def _set_immutable(path: Path, *, value: bool) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        flags = _FLAGS.unpack(fcntl.ioctl(file, _GET_FLAGS, bytes(_FLAGS.size)))[0]
        fcntl.ioctl(file, _SET_FLAGS, _FLAGS.pack(flags | _IMMUTABLE if value else flags & ~_IMMUTABLE))
    finally:
        os.close(file)


@contextmanager
def immutable(*paths: Path) -> Iterator[None]:
    """Make files immutable, as ``chattr +i`` does; their dirty pages are written before."""
    done: list[Path] = []
    try:
        for path in paths:
            # Only a page that is clean is asked for again at its next write.
            file = os.open(path, os.O_RDONLY)
            os.fsync(file)
            os.close(file)
            try:
                _set_immutable(path, value=True)
            except OSError as error:
                if error.errno not in _NO_FLAG:
                    raise
                pytest.skip("needs root, and a temporary folder whose file system has immutable files")
            done.append(path)
        yield
    finally:
        for path in done:
            _set_immutable(path, value=False)


class LoopMount:
    """An ext4 file system in a file, mounted on a folder."""

    def __init__(self, folder: Path) -> None:
        self.image = folder / "image"
        self.folder = folder / "mounted"
        self.folder.mkdir()
        tools = [shutil.which(name) for name in ("mkfs.ext4", "mount", "umount")]
        if os.geteuid() != 0 or None in tools:
            pytest.skip("needs root, mkfs.ext4 and mount")
        self.image.touch()
        os.truncate(self.image, 32 << 20)
        subprocess.run(["mkfs.ext4", "-q", self.image], check=True, capture_output=True)

    def mount(self) -> None:
        """Mount it; skip the test where the machine has no loop devices."""
        result = subprocess.run(
            ["mount", "-o", "loop,errors=remount-ro", self.image, self.folder],
            check=False,
            capture_output=True,
            text=True,
        )
        if result.returncode:
            pytest.skip(f"cannot mount a file: {result.stderr.strip()}")

    def fail(self) -> None:
        """Let ext4 act as after an error of its disk: it remounts itself read-only."""
        subprocess.run(["mount", "-o", "remount,abort", self.folder], check=True, capture_output=True)

    def unmount(self) -> None:
        """Unmount it; do nothing if it is not mounted."""
        with suppress(subprocess.CalledProcessError):
            subprocess.run(["umount", self.folder], check=True, capture_output=True)


@contextmanager
def loop_mount(folder: Path) -> Iterator[LoopMount]:
    """Mount an ext4 file system for a block; unmount it at the end."""
    made = LoopMount(folder)
    made.mount()
    try:
        yield made
    finally:
        made.unmount()
