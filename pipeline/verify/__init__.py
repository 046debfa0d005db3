"""Checks a store, and checks a job's output against the store."""
