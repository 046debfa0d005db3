"""The message store: commit log, consume queues and offset tables in RocketMQ's on-disk format."""
