"""The folder of a cluster that ``rewindmq up`` runs: one ``up`` at a time, and how other commands find it.

The control socket of a running cluster is ``DIR/control.sock``. A folder of the user, the registry, has a
symbolic link to the folder of each running cluster, named after the process id of its ``up``. A killed ``up``
leaves its link behind; the next command that looks removes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rewindmq.cluster.errors import ClusterError
from rewindmq.protocol.files.private import FILE_MODE, make_private_folder

_SOCKET: Final = "control.sock"
_LOCK: Final = "up.lock"
_BACKLOG: Final = 16
# ``sun_path`` has 108 bytes with Linux, 104 with macOS.
_MAX_ADDRESS_BYTES: Final = 100


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the folder for this process; it is made if it does not exist.

    Raises:
        ClusterError: another ``rewindmq up`` runs in it.
        OSError: the folder cannot be made.
    """
    make_private_folder(directory)
    descriptor = os.open(directory / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
            raise ClusterError(
                f"the rewindmq up with process id {owner} runs in {directory}: stop it, or choose another"
                " --dir"
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def registered(directory: Path) -> Iterator[None]:
    """List the folder as one of a running cluster; without a registry, only ``--dir`` finds it."""
    link = None
    registry = _registry()
    if registry is not None:
        link = registry / str(os.getpid())
        link.unlink(missing_ok=True)
        link.symlink_to(directory)
    try:
        yield
    finally:
        if link is not None:
            link.unlink(missing_ok=True)


def running_folders() -> list[Path]:
    """Return the folders of this user's running clusters, sorted; remove the links of ended clusters."""
    registry = _registry()
    if registry is None:
        return []
    found = []
    for link in registry.iterdir():
        with contextlib.suppress(OSError):
            try:
                connect(link).close()
            except (ConnectionRefusedError, FileNotFoundError):
                link.unlink()
            else:
                found.append(link.readlink())
    return sorted(found)


def listening_socket(directory: Path) -> socket.socket:
    """Return the control socket of a folder that this process holds, for its owner only.

    Raises:
        OSError: it cannot be made.
    """
    (directory / _SOCKET).unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _short_address(directory) as address:
            listener.bind(address)
        # Before ``listen``, so that no other user connects in between.
        (directory / _SOCKET).chmod(FILE_MODE)
        listener.listen(_BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener


def remove_socket(directory: Path) -> None:
    """Remove the control socket's name."""
    (directory / _SOCKET).unlink(missing_ok=True)


def connect(directory: Path) -> socket.socket:
    """Return a connection to the cluster that runs in a folder.

    Raises:
        OSError: no cluster runs there.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _short_address(directory) as address:
            connection.connect(address)
    except BaseException:
        connection.close()
        raise
    return connection


@contextlib.contextmanager
def _short_address(directory: Path) -> Iterator[str]:
    """Return the control socket's path in a form that fits into a socket address."""
    address = str(directory / _SOCKET)
    if len(os.fsencode(address)) <= _MAX_ADDRESS_BYTES:
        yield address
        return
    with tempfile.TemporaryDirectory(prefix="rewindmq-", dir="/tmp") as scratch:
        link = Path(scratch) / "dir"
        link.symlink_to(directory.absolute())
        yield str(link / _SOCKET)


def _registry() -> Path | None:
    """Return this user's registry; None if it cannot be made, or if another user could write into it."""
    base = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    path = Path(base) / f"rewindmq-{os.getuid()}"
    try:
        make_private_folder(path)
        status = path.lstat()
    except OSError:
        return None
    is_own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
    return path if is_own and not status.st_mode & 0o022 else None
