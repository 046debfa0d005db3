"""Finds the parts of a log that a query needs, by store times, consume queues and key indexes."""
