"""Ext fields as text, the form JSON and ROCKETMQ headers carry them in (``wire.md`` 2.1)."""

from __future__ import annotations

from rewindmq.protocol.command import ExtValue, RemotingCommand
from rewindmq.protocol.errors import FrameError


def ext_text(value: ExtValue | float) -> str | None:
    """A number in decimal, a boolean as ``true`` or ``false``, bytes as UTF-8; None stays absent.

    Raises:
        FrameError: bytes that are no UTF-8.
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError as error:
            raise FrameError(f"ext field: {error}") from None
    return str(value)


def text_fields(command: RemotingCommand) -> dict[str, str]:
    """Every ext field of ``command`` as text, those of its typed header included, nulls left out."""
    return {
        key: text for key, value in command.all_ext_fields().items() if (text := ext_text(value)) is not None
    }
