"""Which files and folders a function opens, lists and changes, in a process of its own.

``python -m tests.support.touched_files MODULE FUNCTION FOLDER`` calls the function with the folder and
prints what Python's audit events named.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.support.repository import ROOT

_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
# Audit events of a change: places of the changed paths, and of the folders that these are relative to, among
# the arguments.
_CHANGES: Final[dict[str, tuple[tuple[int, int | None], ...]]] = {
    "os.rename": ((0, 2), (1, 3)),
    "os.link": ((0, 2), (1, 3)),
    "os.symlink": ((1, 2),),
    "os.mkdir": ((0, 2),),
    "os.remove": ((0, 1),),
    "os.rmdir": ((0, 1),),
    "os.truncate": ((0, None),),
    "os.utime": ((0, 3),),
    "os.chmod": ((0, 2),),
    "os.chown": ((0, 3),),
}
_READS: Final = ("os.scandir", "os.listdir", "os.chdir")


class Touch(NamedTuple):
    """One audit event.

    Attributes:
        path: with every symbolic link resolved.
        is_change: False if the file was only read, or the folder listed.
    """

    event: str
    path: str
    is_change: bool


def touched_files(module: str, function: str, folder: Path) -> list[Touch]:
    """Call a function in a new process; return what it touched while it ran."""
    command = [sys.executable, "-m", __name__, module, function, str(folder)]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [Touch(*event) for event in json.loads(done.stdout.splitlines()[-1])]


class _Recorder:
    def __init__(self) -> None:
        self.touched: list[Touch] = []
        self.is_on = False

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.is_on:
            return
        if event == "open":
            path, mode, flags = arguments
            is_change = bool((flags or 0) & _WRITING) or any(letter in str(mode or "") for letter in "wxa+")
            self._add(event, path, None, is_change=is_change)
        elif event in _READS:
            self._add(event, arguments[0], None, is_change=False)
        else:
            for at, folder_at in _CHANGES.get(event, ()):
                folder = None if folder_at is None else arguments[folder_at]
                self._add(event, arguments[at], folder, is_change=True)

    def _add(self, event: str, path: object, folder: int | None, *, is_change: bool) -> None:
        if not isinstance(path, str | bytes | os.PathLike):
            # An open descriptor.
            return
        text = os.fsdecode(path)
        if folder is not None and folder >= 0:
            text = os.path.join(os.readlink(f"/proc/self/fd/{folder}"), text)  # noqa: PTH115, PTH118
        self.touched.append(Touch(event, os.path.realpath(text), is_change))


def _main(module: str, function: str, folder: str) -> None:
    work = getattr(import_module(module), function)
    recorder = _Recorder()
    sys.addaudithook(recorder)
    recorder.is_on = True
    work(Path(folder))
    recorder.is_on = False
    print(json.dumps(recorder.touched))


if __name__ == "__main__":
    _main(*sys.argv[1:])
