"""Runs groups of tests and prints a summary; ``scripts/test`` and ``scripts/repeat_tests`` call it."""
