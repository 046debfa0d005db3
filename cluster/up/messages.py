"""What ``rewindmq members`` and ``rewindmq up`` say to each other: one line of JSON each way."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from rewindmq.cluster.up.entrances import Entrances

# Bytes of a request's line, and of a response's: 26 brokers with 3 slaves each, and long paths.
MAX_REQUEST_BYTES: Final = 4_096
MAX_RESPONSE_BYTES: Final = 1 << 20


class MemberAction(StrEnum):
    """What can be done with a cluster's members."""

    LIST = "list"
    KILL = "kill"
    RESTART = "restart"
    PAUSE = "pause"
    RESUME = "resume"


class MemberState(StrEnum):
    """What a member does."""

    RUNNING = "running"
    PAUSED = "paused"
    ENDED = "ended"


class Request(msgspec.Struct, forbid_unknown_fields=True):
    """A command for a cluster; ``member`` is empty only for ``list``."""

    action: MemberAction
    member: str = ""


class Member(msgspec.Struct):
    """One process of a cluster; ``pid`` is None if it has ended."""

    name: str
    state: MemberState
    address: str
    pid: int | None
    log: str


class Response(msgspec.Struct):
    """The members that were asked for, after the command; or why it failed, in one line.

    ``entrances`` are those of the control port; None if there is none.
    """

    directory: str = ""
    pid: int = 0
    entrances: Entrances | None = None
    members: list[Member] = []
    error: str | None = None
