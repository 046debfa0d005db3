"""Sends: check a message, add what the broker adds, append it and respond."""
