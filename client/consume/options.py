"""Options that push and lite pull consumers share, and their checks."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final, Protocol

from rewindmq.protocol.body.heartbeat import ConsumeFromWhere, MessageModel
from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.options import parse_choice

_HALF_HOUR_MS: Final = 30 * 60 * 1000
_LAST_MILLISECOND: Final = 2**63 - 1


class ConsumeOptions(Protocol):
    """The options that push and lite pull consumers have.

    Attributes:
        consume_timestamp: where CONSUME_FROM_TIMESTAMP starts, ``yyyyMMddHHmmss`` in UTC, or ms since the
            epoch as an int; None: half an hour before the consumer was constructed.
    """

    consume_from_where: ConsumeFromWhere
    consume_timestamp: str | int | None
    message_model: MessageModel


# Short names of `ConsumeFromWhere`.
STARTS: Final = MappingProxyType(
    {
        "first": ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        "last": ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
        "timestamp": ConsumeFromWhere.CONSUME_FROM_TIMESTAMP,
    }
)


def choose_start(
    consume_from: ConsumeFromWhere | str | None, consume_from_where: ConsumeFromWhere | str | None
) -> ConsumeFromWhere:
    """Return where a new group starts; the two arguments are two names of the same option.

    Raises:
        ClientError: both names were given, or the value is unknown.
    """
    if consume_from is not None and consume_from_where is not None:
        raise ClientError("consume_from and consume_from_where are one option: give one of them")
    if consume_from_where is not None:
        return parse_choice(ConsumeFromWhere, consume_from_where, "consume_from_where", aliases=STARTS)
    return parse_choice(
        ConsumeFromWhere, "last" if consume_from is None else consume_from, "consume_from", aliases=STARTS
    )


def check_ranges(
    options: ConsumeOptions, ranges: Mapping[str, tuple[int, int]], *, may_be_none: Collection[str] = ()
) -> None:
    """Check that options are integers within their bounds.

    Args:
        ranges: minimum and maximum of each option.
        may_be_none: options that may also be None.

    Raises:
        ClientError: an option is out of range; the error names the first one.
    """
    for name, (low, high) in ranges.items():
        value = getattr(options, name)
        if value is None and name in may_be_none:
            continue
        if not isinstance(value, int) or not low <= value <= high:
            raise ClientError(f"{name} Out of range [{low}, {high}]")


def check_consume_options(options: ConsumeOptions) -> None:
    """Check the shared options.

    Raises:
        ClientError: a timestamp that cannot be read.
    """
    if options.consume_timestamp is not None:
        parse_consume_timestamp(options.consume_timestamp)


def start_timestamp(options: ConsumeOptions, made_at: int) -> int:
    """Return where CONSUME_FROM_TIMESTAMP starts, ms since the epoch.

    Args:
        made_at: construction time of the consumer, ms since the epoch.
    """
    value = options.consume_timestamp
    return made_at - _HALF_HOUR_MS if value is None else parse_consume_timestamp(value)


def parse_consume_timestamp(value: str | int) -> int:
    """Return a ``consume_timestamp`` as ms since the epoch.

    Java reads the 14 digits in the machine's time zone. With UTC, all consumers of a group agree.

    Raises:
        ClientError: neither 14 digits that are a date nor a number of ms from 0 to 2**63 - 1.
    """
    if isinstance(value, int):
        if not 0 <= value <= _LAST_MILLISECOND:
            raise ClientError(f"consumeTimestamp Out of range [0, {_LAST_MILLISECOND}]")
        return value
    try:
        moment = datetime.strptime(value, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        raise ClientError(
            f"consumeTimestamp is invalid, the valid format is yyyyMMddHHmmss,but received {value}"
        ) from None
    return int(moment.timestamp()) * 1000
