"""The clients that are connected: producers and consumers by group, and the queues they lock."""
