"""Models: a small simulated cluster, its operator, and the events that a schedule may add."""
