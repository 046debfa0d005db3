"""Message trace (RocketMQ 4.4 and later): records in a topic of who sent and who consumed a message."""
