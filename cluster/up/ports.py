"""The ports that ``rewindmq up --dir DIR`` remembers: the next start with DIR has the same addresses."""

from __future__ import annotations

import errno
import json
import os
import socket
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

from rewindmq.cluster.errors import ClusterError
from rewindmq.protocol.files.private import open_private

_FILE: Final = "ports.json"
_MAX_BYTES: Final = 65_536
_MAX_PORT: Final = 65_535


def read_ports(directory: Path) -> dict[str, int]:
    """Return the remembered port of each process by name; empty if the folder remembers none.

    Raises:
        ClusterError: the file has something else.
        OSError: the file cannot be read.
    """
    path = directory / _FILE
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        return {}
    try:
        ports = json.loads(text)
    except (ValueError, RecursionError):
        ports = None
    if not _is_table(ports):
        raise ClusterError(f"{path} is not a table of ports: delete it, or pass --new-ports")
    return dict(ports)


def write_ports(directory: Path, ports: Mapping[str, int]) -> None:
    """Remember the ports; a crash leaves the old file or the new one.

    Raises:
        OSError: the file cannot be written.
    """
    path = directory / _FILE
    unfinished = path.with_suffix(".tmp")
    with open_private(unfinished, "wb") as file:
        file.write(json.dumps(ports, indent=2).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)


def refuse_taken_ports(host: str, ports: Mapping[str, int], directory: Path) -> None:
    """Raise if another program has one of the remembered ports.

    Args:
        host: the interface to listen on.
        ports: the ports to check, by process.
        directory: the folder that remembers them.

    Raises:
        ClusterError: one sentence with port, process and folder, and what to do.
    """
    for name, port in ports.items():
        if _is_taken(host, port):
            raise ClusterError(
                f"port {port} of {name}, which {directory} remembers, is in use: stop the program that has"
                " it, or pass --new-ports"
            )


def _is_table(ports: object) -> bool:
    return isinstance(ports, dict) and all(
        type(port) is int and 0 < port <= _MAX_PORT for port in ports.values()
    )


def _is_taken(host: str, port: int) -> bool:
    """Return True if the port cannot be bound because it is in use; the server reports any other error."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with closing(socket.socket(family, socket.SOCK_STREAM)) as probe:
        # As the servers do: connections of the last run that are being closed do not matter.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen(1)
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False
