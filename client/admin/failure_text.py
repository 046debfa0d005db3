"""The text of a failed request, with what was done before it failed."""

from __future__ import annotations

from rewindmq.protocol.errors import RewindMQError


def failure_text(error: RewindMQError) -> str:
    """Return an error and its notes, as one line; the notes name what was changed before it."""
    notes = [f"({note})" for note in getattr(error, "__notes__", ())]
    text = " ".join([str(error) or type(error).__name__, *notes])
    return " ".join(text.splitlines())
