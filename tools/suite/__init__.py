"""Runs groups of tests and sums them up: what ``scripts/test`` and ``scripts/repeat_tests`` call."""
