"""The control port of `rewindmq up`."""
