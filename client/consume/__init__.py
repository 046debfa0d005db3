"""Shared parts of all consumers: assignment, ProcessQueue, offset stores, start offset, locks."""
