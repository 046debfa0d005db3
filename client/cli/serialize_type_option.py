"""``--serialize-type``: the serialization type of a command's requests (docs/spec/protocol.md 2)."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    # `--help` must not load the codecs.
    from rewindmq.protocol.command import SerializeType

_AUTO: Final = "auto"


def add_serialize_type_argument(parser: argparse.ArgumentParser) -> None:
    """Define ``--serialize-type``, and refuse ``--wire``, its name in earlier versions."""
    parser.add_argument(
        "--serialize-type",
        choices=(_AUTO, "json", "rocketmq", "msgpack"),
        default=_AUTO,
        help="how request headers are written. Every broker and name server reads json and rocketmq "
        "(RocketMQ's binary headers); only RewindMQ reads msgpack. auto: msgpack, then json if the peer "
        "refuses it (default: auto)",
    )
    parser.add_argument("--wire", action=_RefuseOldName, help=argparse.SUPPRESS)


def chosen_serialize_type(arguments: argparse.Namespace) -> SerializeType | None:
    """Return the client option ``serialize_type`` that ``--serialize-type`` asks for; None negotiates."""
    from rewindmq.protocol.command import SerializeType

    if arguments.serialize_type == _AUTO:
        return None
    return SerializeType[arguments.serialize_type.upper()]


class _RefuseOldName(argparse.Action):
    """Ends the command with an error that gives the option's new name."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        parser.error("--wire is now called --serialize-type")
