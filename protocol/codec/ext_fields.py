"""Ext fields as text, the form JSON and ROCKETMQ headers carry them in (``wire.md`` 2.1)."""

from __future__ import annotations

from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.ext_text import ext_text


def text_fields(command: RemotingCommand) -> dict[str, str]:
    """Every ext field of ``command`` as text, those of its typed header included, nulls left out."""
    # Answers are mostly text already: what is one needs no call.
    return {
        key: value if type(value) is str else ext_text(value)  # type: ignore[misc]  # None only for None
        for key, value in command.all_ext_fields().items()
        if value is not None
    }
