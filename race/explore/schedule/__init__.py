"""Schedules: the steps that are possible at each moment, and carrying one out."""
