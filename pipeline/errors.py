"""What a pipeline job tells a user in one line."""

from __future__ import annotations

from rewindmq.protocol.errors import RewindMQError


class PipelineError(RewindMQError):
    """A store that cannot be read, an output that cannot be written, or a tool (Spark, Java) that is
    missing."""
