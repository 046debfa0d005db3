"""Message trace (RocketMQ 4.4 and later): who sent a message and who consumed it, as messages of a topic."""
