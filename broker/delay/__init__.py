"""Delayed messages: the hook that stores them first, and their delivery (docs/spec/broker.md B.12)."""
