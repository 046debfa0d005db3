"""The commands ``rewindmq admin``, ``produce`` and ``consume``."""
