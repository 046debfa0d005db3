"""Connected clients: producers and consumers by group, and the queue locks of consumers."""
