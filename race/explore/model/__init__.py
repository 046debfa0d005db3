"""Models: a small simulated cluster, its operator, and what may happen to it."""
