"""Replication: the log over RocketMQ's HA protocol, the tables by requests every 10 s."""
