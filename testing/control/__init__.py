"""The control port of ``rewindmq up``: the kit's faults, members, topics and snapshots over HTTP and JSON."""
