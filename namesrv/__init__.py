"""The name server: holds in memory which broker serves which topic, from the brokers' registrations."""
