"""Drives RewindMQ's own clients; started with ``python -m tools.interop.drivers.rewindmq``."""
