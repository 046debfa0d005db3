"""What a command is, and what it prints."""

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
    """One piece of a command's output, in both forms.

    Attributes:
        lines: as mqadmin prints them.
        data: the same for ``--json``.
    """

    lines: list[str]
    data: Any


@dataclass(frozen=True, slots=True)
class Command:
    """One command of the tool.

    Attributes:
        name: mqadmin's name.
        summary: one line for the list of commands.
        example: what to type, without ``rewindmq admin <name>``.
        add_arguments: defines its own options.
        execute: does it, and yields output piece by piece; raises ``RewindMQError``.
    """

    name: str
    summary: str
    example: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    execute: Callable[[AdminClient, argparse.Namespace], AsyncGenerator[Printed]]


def true_or_false(text: str) -> bool:
    """Read a Java boolean option, for argparse; unlike Java, what is neither is refused."""
    try:
        return {"true": True, "false": False}[text.strip().lower()]
    except KeyError:
        raise argparse.ArgumentTypeError(f"must be true or false, not {text!r}") from None


def java_bool(value: bool) -> str:
    """A boolean as Java prints it."""
    return "true" if value else "false"
