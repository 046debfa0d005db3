"""``rewindmq up`` and ``rewindmq members``."""
