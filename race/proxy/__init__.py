"""Proxy between a client and a cluster: records frames, and holds those that match a pattern."""
