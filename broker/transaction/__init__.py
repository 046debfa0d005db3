"""Transaction messages: half messages, their end, and checks with the producers.

Specification: docs/spec/broker.md B.14.
"""
