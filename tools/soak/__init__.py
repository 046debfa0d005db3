"""The soak test: load, kills and resets for half an hour, and an account of every message."""
