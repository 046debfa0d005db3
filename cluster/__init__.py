"""Clusters of real processes on this machine, and the demo. Import ``LocalCluster`` from ``rewindmq``."""
