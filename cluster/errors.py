"""What can go wrong with a local cluster."""

from __future__ import annotations

from rewindmq.protocol.errors import RewindMQError


class ClusterError(RewindMQError):
    """A member did not start, or is not there; the text is one line.

    What a failed member logged last is attached as a note, which tracebacks show and ``log_tail`` holds.
    """

    def __init__(self, text: str, log_tail: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.log_tail = log_tail
        if log_tail:
            self.add_note("last lines of its log:\n  " + "\n  ".join(log_tail))
