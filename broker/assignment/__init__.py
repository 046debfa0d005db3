"""Assigns the queues of a topic to the consumers of a group, for QUERY_ASSIGNMENT (400)."""
