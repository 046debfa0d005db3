"""Reads key index files in jobs."""
