"""Converts a value of an ext field to text (docs/spec/protocol.md 2.1)."""

from __future__ import annotations

from rewindmq.protocol.errors import FrameError


def ext_text(value: str | float | bool | bytes | None) -> str | None:
    """Return a number in decimal, a boolean as ``true`` or ``false``, bytes as UTF-8, and None as None.

    Raises:
        FrameError: the bytes are not UTF-8.
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
