"""Spark sessions, their Java, errors and progress."""
