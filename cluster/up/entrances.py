"""Where other programs reach the control port of a cluster."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entrances:
    """Where other programs reach the control port and the wire.

    Attributes:
        control: URL of the control port.
        token_file: path of the file with the port's token.
        wire: ``host:port`` that clients use as the name server's, so that rules see their requests.
    """

    control: str
    token_file: str
    wire: str
