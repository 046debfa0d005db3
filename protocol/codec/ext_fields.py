"""Ext fields as text, the form JSON and ROCKETMQ headers carry them in (``wire.md`` 2.1)."""

from __future__ import annotations

from rewindmq.protocol.command import ExtValue, RemotingCommand
from rewindmq.protocol.errors import FrameError


def ext_text(value: ExtValue | float) -> str | None:
    """A number in decimal, a boolean as ``true`` or ``false``, bytes as UTF-8; None stays absent.

    Raises:
        FrameError: bytes that are no UTF-8.
    """
    if type(value) is int:
        return str(value)
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
    # Answers are mostly text already: what is one needs no call.
    return {
        key: value if type(value) is str else ext_text(value)  # type: ignore[misc]  # None only for None
        for key, value in command.all_ext_fields().items()
        if value is not None
    }
