"""The native kernel: what it does must be what Python does."""
