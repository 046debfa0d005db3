"""Replies to requests: those that a client waits for, receives, and creates."""
