"""Snapshots of a store: a consistent prefix of its log, and its queues."""
