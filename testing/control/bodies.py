"""Bodies of the control port's requests, with the words of ``Rmq``."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Final, Literal, TypeVar

import msgspec
from msgspec import Meta

from rewindmq.protocol.command import DECODE_FAILURES
from rewindmq.protocol.limits import MAX_QUEUE_NUMS
from rewindmq.testing.control.http_request import HttpError
from rewindmq.testing.wire.requests import Direction

MAX_WAIT_SECONDS: Final = 600.0
_PAGE: Final = "docs/testkit/other-languages.md describes it"

Seconds = Annotated[float, Meta(gt=0, le=86_400)]
Name = Annotated[str, Meta(min_length=1, max_length=255)]
ClientName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9._-]{1,64}(/[0-9]{1,4})?$")]


class TopicBody(msgspec.Struct, forbid_unknown_fields=True):
    """A topic to create at each broker."""

    name: Name
    queues: Annotated[int, Meta(ge=1, le=MAX_QUEUE_NUMS)] = 4


class ClientBody(msgspec.Struct, forbid_unknown_fields=True):
    """A client that gets an address of its own, so that rules can name it."""

    name: ClientName


class RuleBody(msgspec.Struct, forbid_unknown_fields=True):
    """A rule: which requests it meets, as ``rmq.on``, and what it does with them."""

    on: str | int
    do: Literal["hold", "delay", "drop", "fail", "duplicate"]
    group: Name | None = None
    topic: Name | None = None
    queue: int | None = None
    client: Name | None = None
    server: Name | None = None
    direction: Direction = "request"
    times: int | None = 1
    optional: bool = False
    # Of delay.
    seconds: Seconds | None = None
    # Of fail.
    code: str | int | None = None
    remark: Annotated[str, Meta(max_length=1_024)] = "failed by the test"


class MetBody(msgspec.Struct, forbid_unknown_fields=True):
    """How long to wait until a rule has met ``count`` frames; real seconds."""

    timeout: Annotated[float, Meta(ge=0, le=MAX_WAIT_SECONDS)] | None = None
    count: Annotated[int, Meta(ge=1)] = 1


class LinkBody(msgspec.Struct, forbid_unknown_fields=True):
    """A link to cut, as ``rmq.partition``, or to slow, as ``rmq.slow_link``."""

    do: Literal["partition", "slow_link"]
    server: Name
    client: Name | None = None
    latency: Annotated[float, Meta(ge=0, le=86_400)] = 0.0
    bytes_per_second: Annotated[float, Meta(ge=1)] | None = None


class HealBody(msgspec.Struct, forbid_unknown_fields=True):
    """Which links to heal: those of a server, or all."""

    server: Name | None = None


class SnapshotBody(msgspec.Struct, forbid_unknown_fields=True):
    """A snapshot to take."""

    name: Name


class SnapshotFileBody(msgspec.Struct, forbid_unknown_fields=True):
    """The file to save a snapshot to, or to load it from: a name in the port's folder."""

    file: Name


class DiskBody(msgspec.Struct, forbid_unknown_fields=True):
    """Whether a broker acts as if its disk were full, as in ``rmq.disk_full``."""

    broker: Name
    full: bool = True


class TravelBody(msgspec.Struct, forbid_unknown_fields=True):
    """How far to move the brokers' clocks, as ``rmq.travel``: seconds of the cluster's time."""

    seconds: float


class NoBody(msgspec.Struct, forbid_unknown_fields=True):
    """Nothing."""


BodyT = TypeVar("BodyT", bound=msgspec.Struct)


def decode(body: bytes, kind: type[BodyT]) -> BodyT:
    """Return the body's value; an empty body counts as ``{}``.

    Raises:
        HttpError: it is not JSON, or has other fields.
    """
    try:
        return msgspec.json.decode(body or b"{}", type=kind)
    except DECODE_FAILURES as error:
        raise HttpError(HTTPStatus.BAD_REQUEST, f"the body is wrong: {error}; {_PAGE}") from None
