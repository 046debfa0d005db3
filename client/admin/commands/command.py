"""Command and Printed: the definition of a command, and a piece of its output."""

from __future__ import annotations

import argparse
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # Showing help must not load a client.
    from rewindmq.client.admin.admin_client import AdminClient


@dataclass(frozen=True, slots=True)
class Printed:
    """A piece of a command's output, as text and as JSON.

    Attributes:
        lines: the lines that mqadmin prints.
        data: the value for ``--json``; None prints nothing.
        exit_code: of the command; the last piece decides.
    """

    lines: list[str]
    data: Any
    exit_code: int = 0


@dataclass(frozen=True, slots=True)
class Command:
    """A command of ``rewindmq admin``.

    Attributes:
        name: mqadmin's name.
        summary: one line for the list of commands.
        example: example options, without ``rewindmq admin <name>``.
        add_arguments: defines the options that only this command has.
        execute: runs the command, and yields its output piece by piece; raises ``RewindMQError``.
    """

    name: str
    summary: str
    example: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    execute: Callable[[AdminClient, argparse.Namespace], AsyncGenerator[Printed]]


def true_or_false(text: str) -> bool:
    """Parse ``true`` or ``false`` for argparse; refuse any other text, which Java takes for false."""
    try:
        return {"true": True, "false": False}[text.strip().lower()]
    except KeyError:
        raise argparse.ArgumentTypeError(f"must be true or false, not {text!r}") from None


def java_bool(value: bool) -> str:
    """Format a boolean as Java prints it."""
    return "true" if value else "false"
