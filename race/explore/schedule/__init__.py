"""Schedules: find the possible steps at each state, and take one of them."""
