"""RocketMQ's property files: read at start-up, changed while a server runs."""
