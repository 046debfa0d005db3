"""Clusters of real processes on this machine; the demo. Import ``LocalCluster`` from ``rewindmq``."""
