"""The options of every server process; a separate module, so that ``--help`` loads no event loop."""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from typing import Final

# Where RocketMQ's Dashboard 2.1.0 listens, too.
DASHBOARD_PORT: Final = 8082
LOG_LEVELS: Final = ("debug", "info", "warning", "error")


@dataclass(frozen=True, slots=True)
class ProcessOptions:
    """How a server process runs, independent of its service.

    Attributes:
        time_scale: factor on every scheduled wait, greater than 0; 0.01 turns 30 s into 0.3 s.
        seed: makes the process's random choices repeatable; None uses the system's random numbers.
        log_level: the least severe events written to standard error.
        exit_with_parent: stop when standard input, a pipe from the parent, ends, as it does with the parent.
    """

    time_scale: float = 1.0
    seed: int | None = None
    log_level: str = "info"
    exit_with_parent: bool = False

    @classmethod
    def from_arguments(cls, arguments: argparse.Namespace) -> ProcessOptions:
        return cls(
            time_scale=arguments.time_scale,
            seed=arguments.seed,
            log_level=arguments.log_level,
            exit_with_parent=arguments.exit_with_parent,
        )


def add_process_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options that ``ProcessOptions.from_arguments`` reads."""
    group = parser.add_argument_group("process")
    group.add_argument(
        "--time-scale",
        type=positive_factor,
        default=1.0,
        metavar="X",
        help="shorten (or stretch) every wait together: 0.01 turns 10 s into 0.1 s (default: 1)",
    )
    group.add_argument("--seed", type=int, metavar="N", help="make random choices repeatable")
    group.add_argument(
        "--log-level",
        choices=LOG_LEVELS,
        default="info",
        help="least severe event on stderr (default: %(default)s)",
    )
    group.add_argument(
        "--exit-with-parent",
        action="store_true",
        help="stop when standard input, a pipe from the parent, is closed",
    )


def add_open_access_argument(parser: argparse.ArgumentParser) -> None:
    """Define ``--allow-open-access``, see ``open_access.refuse_open_access``."""
    parser.add_argument(
        "--allow-open-access",
        action="store_true",
        help="let HOST be an address that other machines can connect to: there is no TLS, no access control",
    )


def positive_factor(text: str) -> float:
    """Read a finite number greater than 0, for argparse."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (value > 0 and math.isfinite(value)):
        raise argparse.ArgumentTypeError(f"must be a number greater than 0, not {text!r}")
    return value


def positive_int(text: str) -> int:
    """Read an integer of at least 1, for argparse."""
    if not (text.isascii() and text.isdigit() and int(text) >= 1):
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, not {text!r}")
    return int(text)


def port_number(text: str) -> int:
    """Read a TCP port, 0 (any free one) to 65535, for argparse."""
    if not (text.isascii() and text.isdigit() and int(text) <= 65_535):
        raise argparse.ArgumentTypeError(f"must be 0 to 65535, not {text!r}")
    return int(text)
