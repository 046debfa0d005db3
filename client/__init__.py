"""Clients: producers, push, pull and lite pull consumers, the admin client. Import them from ``rewindmq``."""
