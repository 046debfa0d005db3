"""Typed headers, named as RocketMQ's Java classes, one module per family of requests.

Field lists are docs/spec/protocol.md 3.2, 3.5 and 3.6. Fields without default are the ones Java marks as
required.
"""
