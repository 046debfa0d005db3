"""Simulation: one test body under virtual time, with a schedule drawn from each seed."""
