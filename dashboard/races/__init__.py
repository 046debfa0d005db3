"""Runs of the race laboratory for the dashboard, each in a process of its own."""
