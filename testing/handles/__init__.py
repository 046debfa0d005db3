"""Handles that a test works with: the cluster (``Rmq``), a topic, a group, a reset."""
