"""The name server: which broker serves which topic, kept in memory from what brokers register."""
