"""Consume queues: where each message of a queue is in the log, and when it was stored."""
