"""Searches: run the schedules of a model, judge them, and shrink one that fails."""
