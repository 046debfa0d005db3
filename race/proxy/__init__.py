"""Proxy between a client and a cluster: records frames; holds, delays, drops, fails or duplicates some."""
