"""The error of local clusters."""

from __future__ import annotations

from rewindmq.protocol.errors import RewindMQError


class ClusterError(RewindMQError):
    """A local cluster cannot do what was asked, or one of its processes failed; the text is one line.

    Attributes:
        log_tail: the last log lines of a process that failed; tracebacks show them as a note.
    """

    def __init__(self, text: str, log_tail: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.log_tail = log_tail
        if log_tail:
            self.add_note("last lines of its log:\n  " + "\n  ".join(log_tail))
