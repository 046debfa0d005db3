"""Transaction messages: half messages, how they end, and asking producers about them.

Specification: docs/spec/broker.md B.14.
"""
