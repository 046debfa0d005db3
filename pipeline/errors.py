"""The error that a pipeline job reports to a user in one line."""

from __future__ import annotations

from rewindmq.protocol.errors import RewindMQError


class PipelineError(RewindMQError):
    """A store cannot be read, an output cannot be written, or a tool (Spark, Java) is missing."""
