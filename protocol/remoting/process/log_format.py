"""The form of a log line: one line for each event, in which nothing of a peer moves a terminal's cursor."""

from __future__ import annotations

import logging

from rewindmq.protocol.text import escape_controls


class OneLineFormatter(logging.Formatter):
    """Escapes control characters of messages and errors, and joins the lines of a traceback into one."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        # Escaped before the traceback follows, so that a line feed of a peer does not look like one of ours.
        return escape_controls(super().formatMessage(record))

    def format(self, record: logging.LogRecord) -> str:
        return " | ".join(map(escape_controls, super().format(record).splitlines()))


def escape_unconfigured_log() -> None:
    """Give the warnings of a command that configures no log the same form."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(OneLineFormatter())
