"""Delayed messages: into the schedule topic, and out of it when they are due (``behaviour.md`` B.12)."""
