"""Stages that a race is played on: simulated, in real processes, or in real processes behind proxies."""
