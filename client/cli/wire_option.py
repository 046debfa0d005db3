"""``--wire``: the header codec that a command of ours speaks (docs/spec/protocol.md 2)."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    # Showing help must not load the codecs.
    from rewindmq.protocol.command import SerializeType

_AUTO: Final = "auto"


def add_wire_argument(parser: argparse.ArgumentParser) -> None:
    """Define ``--wire``."""
    parser.add_argument(
        "--wire",
        choices=(_AUTO, "json", "rocketmq", "msgpack"),
        default=_AUTO,
        help="header codec: json and rocketmq (its binary one) are understood by every broker and name "
        "server, msgpack by ours; auto: msgpack where the peer speaks it, else json (default: auto)",
    )


def chosen_wire(arguments: argparse.Namespace) -> SerializeType | None:
    """What ``--wire`` says, as clients are told: None finds out."""
    from rewindmq.protocol.command import SerializeType

    return None if arguments.wire == _AUTO else SerializeType[arguments.wire.upper()]
