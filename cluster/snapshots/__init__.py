"""Snapshots of a local cluster: copies of its stores that link the files which never change."""
