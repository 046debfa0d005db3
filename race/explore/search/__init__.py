"""Searches: run the schedules of a model, judge them, and shrink a failing one."""
