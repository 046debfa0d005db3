"""The driver of RewindMQ's clients; ``python -m tools.interop.drivers.rewindmq`` starts it."""
