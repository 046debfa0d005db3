"""Replies to requests: a client waits for them, receives them, and creates them."""
