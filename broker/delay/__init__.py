"""Delayed messages: into the schedule topic, and out of it when they are due (docs/spec/broker.md B.12)."""
