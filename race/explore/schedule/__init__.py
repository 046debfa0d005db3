"""Schedules: find the steps that are possible at each moment, and take one."""
