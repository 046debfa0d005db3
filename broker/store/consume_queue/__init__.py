"""Consume queues: the log position and store time of each message of a queue."""
