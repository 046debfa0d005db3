"""RewindMQ: a RocketMQ-compatible message-queue cluster with offset reset at its heart."""

__version__ = "0.1.0"
