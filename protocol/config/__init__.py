"""RocketMQ's property files: read at the start, changed while a server runs."""
