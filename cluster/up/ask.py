"""Sends a command to a running cluster, from another process."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Final

import msgspec

from rewindmq.cluster.errors import ClusterError
from rewindmq.cluster.up.folder import connect, running_folders
from rewindmq.cluster.up.messages import MAX_RESPONSE_BYTES, Request, Response
from rewindmq.protocol.command import DECODE_FAILURES

# A restart may take the 10 s of a stop and the 30 s of a start, after another command's.
_LIMIT_SECONDS: Final = 100.0


def find_cluster(directory: Path | None) -> Path:
    """Return the folder of the cluster that is meant: the given one, else the only running one of this user.

    Raises:
        ClusterError: none runs, or several.
    """
    if directory is not None:
        return directory.absolute()
    folders = running_folders()
    if not folders:
        raise ClusterError(
            "no cluster of yours runs: start one with rewindmq up, or name its folder with --dir"
        )
    if len(folders) > 1:
        raise ClusterError(f"several clusters run, choose one with --dir: {', '.join(map(str, folders))}")
    return folders[0]


def ask(directory: Path, request: Request) -> Response:
    """Send a command and return the cluster's answer, when the command is done.

    Raises:
        ClusterError: no cluster runs in the folder, it refused, or it did not answer.
    """
    try:
        connection = connect(directory)
    except OSError:
        raise ClusterError(
            f"no cluster runs in {directory}: start it with rewindmq up --dir {directory}"
        ) from None
    with connection:
        response = _exchange(connection, request, directory)
    if response.error is not None:
        raise ClusterError(response.error)
    return response


def _exchange(connection: socket.socket, request: Request, directory: Path) -> Response:
    connection.settimeout(_LIMIT_SECONDS)
    try:
        connection.sendall(msgspec.json.encode(request) + b"\n")
        with connection.makefile("rb") as answers:
            line = answers.readline(MAX_RESPONSE_BYTES)
    except TimeoutError:
        raise ClusterError(
            f"the rewindmq up of {directory} did not answer within {_LIMIT_SECONDS:g} s; is it paused?"
        ) from None
    except OSError:
        line = b""
    if not line:
        raise ClusterError(f"the cluster in {directory} stopped before the command was done")
    try:
        return msgspec.json.decode(line, type=Response)
    except DECODE_FAILURES:
        raise ClusterError(f"the rewindmq up of {directory} is of another version") from None
