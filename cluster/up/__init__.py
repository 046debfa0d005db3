"""A cluster in the foreground (``rewindmq up``), and commands from another shell (``rewindmq members``)."""
